"""References, merging and plain roots: right for schemas that mean something, harmless for all others."""

import copy
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from proxy.protocol.json_schema import (
    COMBINATORS,
    SchemaDocument,
    as_dict,
    as_list,
    flatten_root,
    is_deeper_than,
    strings,
    without,
)
from tests.unit.proxy.protocol.schemas import ANY_SCHEMA, JSON

TEXT, NUMBER = {"type": "string"}, {"type": "integer"}


def resolved(schema: Any, **definitions: Any) -> Any:
    return SchemaDocument({"$defs": definitions}).resolve(schema)


def test_a_schema_without_references_is_itself() -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}, "anyOf": [TEXT]}
    assert resolved(schema) is schema


@pytest.mark.parametrize(
    ("schema", "known"), [(True, {}), (False, None), (None, None), ("x", None), ([], None), (1, None)]
)
def test_what_is_no_object(schema: object, known: object) -> None:
    assert resolved(schema) == known


def test_a_local_reference_is_merged_under_its_siblings() -> None:
    merged = resolved({"$ref": "#/$defs/site", "description": "mine"}, site=TEXT | {"description": "theirs"})
    assert merged == {"type": "string", "description": "mine"}


def test_parts_are_merged_in_their_order() -> None:
    merged = resolved(
        {"allOf": [{"type": "string", "format": "date"}, {"$ref": "#/$defs/x"}]}, x={"format": "time", "minLength": 1}
    )
    assert merged == {"type": "string", "format": "date", "minLength": 1}


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        ("#", {"$defs": {"a/b": {"~ c": [TEXT, NUMBER]}}, "": {"": TEXT}}),
        ("#/$defs/a~1b/~0%20c/1", NUMBER),
        ("#//", TEXT),
    ],
)
def test_references_are_json_pointers(reference: str, found: object) -> None:
    root = {"$defs": {"a/b": {"~ c": [TEXT, NUMBER]}}, "": {"": TEXT}}
    assert SchemaDocument(root).resolve({"$ref": reference}) == found


@pytest.mark.parametrize(
    "reference",
    [
        "#/$defs/none",
        "#/$defs/list/2",
        "#/$defs/list/-1",
        "#/$defs/list/x",
        "#/$defs/list/²",
        "#anchor",
        "",
        "other.json",
        "https://example.com/schema.json",
        "file:///etc/passwd",
        "#/$defs/text/x",
        None,
        5,
        ["#"],
        "#/" + "x" * 600,
    ],
)
def test_other_references_lead_nowhere(reference: object) -> None:
    assert resolved({"$ref": reference, "type": "string"}, list=[TEXT, NUMBER], text="abc") is None


def test_a_part_that_leads_nowhere_makes_the_whole_unknown() -> None:
    assert resolved({"allOf": [TEXT, {"$ref": "#/nowhere"}]}) is None


def test_references_in_a_circle_end() -> None:
    assert resolved({"$ref": "#/$defs/a"}, a={"$ref": "#/$defs/b"}, b={"$ref": "#/$defs/a"}) is None
    assert resolved({"$ref": "#/$defs/a"}, a={"allOf": [{"$ref": "#/$defs/a"}]}) is None


def test_five_references_in_a_row_are_followed() -> None:
    chain: dict[str, Any] = {f"s{number}": {"$ref": f"#/$defs/s{number + 1}"} for number in range(6)}
    chain["s5"] = TEXT
    assert resolved({"$ref": "#/$defs/s1"}, **chain) == TEXT
    assert resolved({"$ref": "#/$defs/s0"}, **chain) is None


def test_the_steps_of_one_document_are_limited() -> None:
    document = SchemaDocument({})
    assert document.resolve(TEXT) == TEXT
    for _ in range(5_000):
        document.resolve(TEXT)
    assert document.resolve(TEXT) is None
    assert document.argument_set({"properties": {"a": TEXT}}).properties == {}


def test_the_shape_of_a_plain_object() -> None:
    arguments = SchemaDocument({}).argument_set({"properties": {"b": TEXT, "a": NUMBER}, "required": ["a", 5]})
    assert list(arguments.properties) == ["b", "a"]
    assert arguments.required == {"a"}


@pytest.mark.parametrize("schema", [None, [], "x", True, {}, {"properties": [], "required": "a"}])
def test_the_shape_of_something_else_is_empty(schema: object) -> None:
    arguments = SchemaDocument({}).argument_set(schema)
    assert (arguments.properties, arguments.required) == ({}, frozenset())


def test_parts_add_arguments_and_requirements() -> None:
    schema = {
        "properties": {"a": TEXT},
        "required": ["a"],
        "allOf": [{"properties": {"b": TEXT}, "required": ["b"]}, {"$ref": "#/$defs/more"}],
    }
    arguments = SchemaDocument({"$defs": {"more": {"properties": {"c": TEXT, "a": TEXT}}}}).argument_set(schema)
    assert arguments.properties == {"a": TEXT, "b": TEXT, "c": TEXT}
    assert arguments.required == {"a", "b"}


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
def test_alternatives_add_arguments_and_require_what_all_of_them_do(keyword: str) -> None:
    first = {"properties": {"kind": {"const": "a"}, "x": TEXT}, "required": ["kind", "x"]}
    second = {"properties": {"kind": {"const": "b"}, "y": TEXT}, "required": ["y", "kind"]}
    arguments = SchemaDocument({}).argument_set({keyword: [first, second, False]})
    assert arguments.properties == {"kind": {"anyOf": [{"const": "a"}, {"const": "b"}]}, "x": TEXT, "y": TEXT}
    assert arguments.required == {"kind"}


def test_an_alternative_that_requires_nothing_lifts_the_requirement() -> None:
    assert SchemaDocument({}).argument_set({"anyOf": [{"required": ["a"]}, True]}).required == frozenset()


def test_a_property_of_root_and_part_must_fit_both() -> None:
    arguments = SchemaDocument({}).argument_set(
        {"properties": {"a": TEXT}, "allOf": [{"properties": {"a": {"minLength": 1}}}]}
    )
    assert arguments.properties == {"a": {"allOf": [TEXT, {"minLength": 1}]}}


def test_too_many_choices_for_one_property_are_no_limit() -> None:
    def shape_of(count: int) -> dict[str, Any]:
        branches = [{"properties": {"kind": {"const": number}}} for number in range(count)]
        return SchemaDocument({}).argument_set({"oneOf": branches}).properties

    assert len(shape_of(50)["kind"]["anyOf"]) == 50
    assert shape_of(51) == {"kind": {}}


def test_a_plain_object_stays_the_object_it_is() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"anyOf": [TEXT, NUMBER]}},
        "$defs": {},
        "additionalProperties": False,
    }
    assert flatten_root(schema) == (schema, "")
    assert flatten_root(schema)[0] is schema


@pytest.mark.parametrize(
    "schema", [{}, {"type": "string"}, {"type": ["object", "null"]}, {"type": None}, {"$ref": "#/x"}]
)
def test_the_root_is_made_an_object(schema: dict[str, Any]) -> None:
    assert flatten_root(schema) == (schema | {"type": "object"}, "")


def test_only_the_root_combinator_goes() -> None:
    nested = {"anyOf": [TEXT, {"oneOf": [NUMBER, {"allOf": [TEXT]}]}]}
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": {"branch": {"properties": {"b": nested}, "required": ["b"]}},
        "title": "T",
        "properties": {"a": nested},
        "additionalProperties": False,
        "oneOf": [{"$ref": "#/$defs/branch"}, {"properties": {"c": TEXT}, "required": ["c", "d"]}],
    }
    before = copy.deepcopy(schema)
    flat, note = flatten_root(schema)
    assert schema == before
    assert flat == {
        "$schema": schema["$schema"],
        "$defs": schema["$defs"],
        "title": "T",
        "type": "object",
        "properties": {"a": nested, "b": nested, "c": TEXT},
        "additionalProperties": False,
    }
    assert note == "Required arguments: exactly one of (b), (c, d)."


def test_what_all_alternatives_require_stays_required() -> None:
    branches = [{"required": ["b", "a"]}, {"required": ["a", "c"]}]
    flat, note = flatten_root({"type": "object", "properties": {"a": TEXT}, "required": ["z"], "anyOf": branches})
    assert flat["required"] == ["a", "z"]
    assert note == "Required arguments: at least one of (a, b), (a, c)."


@pytest.mark.parametrize(
    "schema",
    [
        {"allOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {"anyOf": [{"required": ["a"]}]},
        {"anyOf": [{"required": ["a"]}, {"required": ["a"]}]},
        {"anyOf": [{}, True, None]},
        {"oneOf": []},
        {"oneOf": "x"},
    ],
)
def test_no_note_where_no_choice_is_lost(schema: dict[str, Any]) -> None:
    flat, note = flatten_root(schema)
    assert note == ""
    assert flat["type"] == "object"
    assert not flat.keys() & set(COMBINATORS)


def test_alternatives_without_requirements_are_named_by_their_arguments() -> None:
    branches = [{"properties": {"b": TEXT, "a": TEXT}}, {"properties": {"c": TEXT}}]
    assert flatten_root({"oneOf": branches})[1] == "Required arguments: exactly one of (b, a), (c)."


def test_a_shape_is_gathered_over_five_references() -> None:
    chain: dict[str, Any] = {f"s{number}": {"$ref": f"#/$defs/s{number + 1}"} for number in range(6)}
    chain["s5"] = {"properties": {"a": TEXT}}
    document = SchemaDocument({"$defs": chain})
    assert document.argument_set({"$ref": "#/$defs/s1"}).properties == {"a": TEXT}
    assert document.argument_set({"$ref": "#/$defs/s0"}).properties == {}


def test_a_note_stays_short() -> None:
    longest = flatten_root({"anyOf": [{"required": ["a" * 244]}, {"required": ["b" * 250]}]})[1]
    assert longest == f"Required arguments: at least one of ({'a' * 244}), ({'b' * 250})."
    longer = flatten_root({"anyOf": [{"required": ["a" * 244]}, {"required": ["b" * 251]}]})[1]
    assert longer == f"Required arguments: at least one of ({'a' * 244}), ({'b' * 250}…."
    note = flatten_root({"anyOf": [{"required": [f"argument_{number}"]} for number in range(500)]})[1]
    assert len(note) < 600
    assert note.endswith("….")


def test_both_kinds_of_choice_are_described() -> None:
    schema = {"anyOf": [{"required": ["a"]}, {"required": ["b"]}], "oneOf": [{"required": ["c"]}, {"required": ["d"]}]}
    assert flatten_root(schema)[1] == (
        "Required arguments: at least one of (a), (b). Required arguments: exactly one of (c), (d)."
    )


@settings(deadline=None)
@given(schema=ANY_SCHEMA)
def test_any_schema_becomes_a_plain_object_that_keeps_the_rest(schema: dict[str, Any]) -> None:
    before = copy.deepcopy(schema)
    flat, _ = flatten_root(schema)
    assert schema == before
    assert flat["type"] == "object"
    assert not flat.keys() & set(COMBINATORS)
    rest = ("type", "properties", "required", *COMBINATORS)
    assert without(flat, rest) == without(schema, rest)
    assert flatten_root(flat) == (flat, "")


PROPERTIES = st.dictionaries(st.sampled_from("abcd"), st.sampled_from([TEXT, NUMBER]), max_size=3)


@settings(deadline=None)
@given(
    data=st.data(),
    keyword=st.sampled_from(["anyOf", "oneOf", "allOf"]),
    argument_sets=st.lists(PROPERTIES, min_size=1, max_size=3),
)
def test_arguments_that_the_vendor_takes_are_not_refused(
    data: st.DataObject, keyword: str, argument_sets: list[dict[str, Any]]
) -> None:
    branches = [
        {"properties": arguments, "required": data.draw(st.permutations(list(arguments)))}
        for arguments in argument_sets
    ]
    schema = {"type": "object", keyword: branches}
    wanted = (
        {name: each for arguments in argument_sets for name, each in arguments.items()}
        if keyword == "allOf"
        else data.draw(st.sampled_from(argument_sets))
    )
    arguments = {name: data.draw(st.text() if each == TEXT else st.integers()) for name, each in wanted.items()}
    if Draft202012Validator(schema).is_valid(arguments):
        assert Draft202012Validator(flatten_root(schema)[0]).is_valid(arguments)


def test_a_schema_that_multiplies_itself_runs_out_of_steps() -> None:
    definitions = {
        f"d{level}": {
            "anyOf": [{"$ref": f"#/$defs/d{level + 1}", "title": str(number)} for number in range(300)],
            "properties": {f"p{number}": {} for number in range(300)},
        }
        for level in range(6)
    }
    started_s = time.process_time()
    flat, _ = flatten_root({"$defs": definitions, "anyOf": [{"$ref": "#/$defs/d0"}] * 300})
    assert flat["type"] == "object"
    assert time.process_time() - started_s < 20  # a guard against hanging, not a measurement


@pytest.mark.parametrize(
    ("value", "depth"),
    [(1, 0), ("x", 0), ([], 1), ({}, 1), ([1], 1), ({"a": []}, 2), ([[], [[]]], 3), ({"a": {"b": {"c": [1]}}}, 4)],
)
def test_depth(value: object, depth: int) -> None:
    assert not is_deeper_than(value, depth)
    if depth:
        assert is_deeper_than(value, depth - 1)


def test_depth_is_found_without_recursion() -> None:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    assert is_deeper_than(value, 64)
    while value:  # taken apart from the outside, because freeing it at once is recursive as well
        value = value.pop()


@settings(deadline=None)
@given(value=JSON)
def test_what_is_of_the_wrong_type_is_empty(value: Any) -> None:
    assert as_dict(value) == (value if isinstance(value, dict) else {})
    assert as_list(value) == (value if isinstance(value, list) else [])
    assert strings(value) == ([each for each in value if isinstance(each, str)] if isinstance(value, list) else [])


def test_without() -> None:
    assert without({"a": 1, "b": 2}, ["a", "c"]) == {"b": 2}
