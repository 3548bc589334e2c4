"""The values and the description of a flag, for the schemas that vendors write."""

from typing import Any

import pytest
from hypothesis import given, settings

from proxy.protocol.flag_types import Kind, describe, kind_of, type_names, without_null
from proxy.protocol.json_schema import SchemaDocument, as_dict
from tests.unit.proxy.protocol.schemas import ANY_SCHEMA, JSON


def flag_for(schema: Any, **definitions: Any) -> tuple[str, str]:
    document = SchemaDocument({"properties": {"x": schema}, "$defs": definitions})
    resolved = without_null(document, schema)
    kind = kind_of(document, resolved)
    return kind.type, describe(as_dict(schema) if resolved is None else resolved, kind)


@pytest.mark.parametrize(
    ("schema", "flag"),
    [
        ({"type": "string"}, ("string", "")),
        ({"type": "integer"}, ("integer", "")),
        ({"type": "number"}, ("number", "")),
        ({"type": "boolean"}, ("boolean", "")),
        ({}, ("string", "")),
        (True, ("string", "")),
        (False, ("json", "(JSON)")),
        (5, ("json", "(JSON)")),
        ({"type": "file"}, ("string", "")),
        ({"type": "null"}, ("string", "")),
        ({"type": 5}, ("string", "")),
        ({"type": ["string", "null"]}, ("string", "")),
        ({"type": ["null", "integer"]}, ("integer", "")),
        ({"type": ["string", "integer"]}, ("string", "")),
        ({"type": ["integer", "number"]}, ("number", "")),
        ({"type": ["string", "object"]}, ("json", "(JSON)")),
        ({"type": ["object", "array"]}, ("json", "(JSON)")),
        ({"type": "object"}, ("json", "(JSON)")),
        ({"type": "object", "description": "Filter"}, ("json", "Filter (JSON)")),
        ({"additionalProperties": {"type": "string"}}, ("json", "(JSON)")),
    ],
)
def test_types(schema: Any, flag: tuple[str, str]) -> None:
    assert flag_for(schema) == flag


@pytest.mark.parametrize(
    ("schema", "flag"),
    [
        ({"enum": ["a", "b"]}, ("string", "One of: a, b")),
        ({"enum": ["a", "b"], "description": "Which"}, ("string", "Which. One of: a, b")),
        ({"type": "string", "enum": ["a", None], "description": "Which."}, ("string", "Which. One of: a")),
        ({"const": "a"}, ("string", "One of: a")),
        ({"enum": [1, 2]}, ("integer", "One of: 1, 2")),
        ({"enum": [1, 2.5]}, ("number", "One of: 1, 2.5")),
        ({"enum": [0.5]}, ("number", "One of: 0.5")),
        ({"enum": [True, False]}, ("boolean", "One of: true, false")),
        ({"enum": ["a", 1]}, ("string", "One of: a, 1")),
        ({"enum": ["a", {"b": 1}]}, ("json", '(JSON). One of: a, {"b": 1}')),
        ({"const": None}, ("string", "")),
        ({"enum": []}, ("string", "")),
        ({"enum": [], "type": "integer"}, ("integer", "")),
        ({"enum": list(range(60))}, ("integer", f"One of: {', '.join(map(str, range(50)))}, …")),
    ],
)
def test_limited_values(schema: Any, flag: tuple[str, str]) -> None:
    assert flag_for(schema) == flag


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
@pytest.mark.parametrize(
    ("choices", "flag"),
    [
        ([{"type": "integer"}, {"type": "null"}], ("integer", "")),
        ([{"const": None}, {"type": "string", "description": "theirs"}], ("string", "theirs")),
        ([{"enum": [None]}, {"type": "array", "items": {"type": "string"}}], ("array", "(list of string, repeatable)")),
        ([{"anyOf": [{"type": "integer"}, {"type": "null"}]}, {"type": "null"}], ("integer", "")),
        ([{"type": "string"}, {"type": "integer"}], ("string", "")),
        ([{"type": "integer"}, {"type": "number"}, {"type": "null"}], ("number", "")),
        ([{"type": "string", "minLength": 1}, {"type": "string"}], ("string", "")),
        ([{"const": "a"}, {"enum": ["b", "a"]}], ("string", "One of: a, b")),
        ([{"const": "a"}, {"type": "string"}], ("string", "")),
        ([{"type": "string"}, {"type": "array", "items": {"type": "string"}}], ("json", "(JSON)")),
        ([{"type": "object"}, {"type": "null"}], ("json", "(JSON)")),
        ([{"$ref": "#/nowhere"}, {"type": "null"}], ("json", "(JSON)")),
        ([{"$ref": "#/nowhere"}, {"type": "string"}], ("json", "(JSON)")),
        ([{"type": "null"}], ("string", "")),
        ([], ("string", "")),
    ],
)
def test_choices(keyword: str, choices: list[Any], flag: tuple[str, str]) -> None:
    assert flag_for({keyword: choices}) == flag


@pytest.mark.parametrize(
    ("schema", "flag"),
    [
        ({"type": "string", "anyOf": [{"format": "date"}, {"format": "time"}]}, ("string", "")),
        ({"type": "array", "items": {"type": "string"}, "anyOf": [{"minItems": 1}, {"maxItems": 0}]},
         ("array", "(list of string, repeatable)")),
        ({"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, ("json", "(JSON)")),
        ({"type": "integer", "anyOf": [{}, {"minimum": 1}]}, ("integer", "")),
        ({"type": "integer", "description": "Size", "anyOf": [{}, {"type": "null"}]}, ("integer", "Size")),
        ({"type": "integer", "anyOf": [{}, {"$ref": "#/nowhere"}]}, ("json", "(JSON)")),
    ],
)  # fmt: skip
def test_choices_share_the_type_beside_them(schema: Any, flag: tuple[str, str]) -> None:
    assert flag_for(schema) == flag


@pytest.mark.parametrize(("levels", "kind"), [(1, "integer"), (8, "integer"), (12, "json")])
def test_choices_inside_each_other_end(levels: int, kind: str) -> None:
    schema: dict[str, Any] = {"type": "integer"}
    for _ in range(levels):
        schema = {"anyOf": [schema, {"type": "null"}]}
    assert flag_for(schema)[0] == kind


def test_what_may_be_null_keeps_what_the_property_says() -> None:
    schema = {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}], "default": None, "description": "Size"}
    assert flag_for(schema) == ("integer", "Size. Min: 1")


@pytest.mark.parametrize(
    ("schema", "flag"),
    [
        ({"type": "array", "items": {"type": "integer"}}, ("array", "(list of integer, repeatable)")),
        ({"items": {"type": "string"}}, ("array", "(list of string, repeatable)")),
        (
            {"type": "array", "items": {"enum": ["a", "b"]}, "description": "Tags"},
            ("array", "Tags (list of string, repeatable). One of: a, b"),
        ),
        ({"type": "array", "items": {"$ref": "#/$defs/n"}}, ("array", "(list of integer, repeatable)")),
        ({"type": "array", "items": {"type": ["string", "null"]}}, ("array", "(list of string, repeatable)")),
        ({"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}},
         ("array", "(list of string, repeatable)")),
        ({"type": "array", "items": {"type": "object"}}, ("json", "(JSON)")),
        ({"type": "array", "items": {"type": "array", "items": {"type": "string"}}}, ("json", "(JSON)")),
        ({"type": "array"}, ("json", "(JSON)")),
        ({"type": "array", "items": {}}, ("json", "(JSON)")),
        ({"type": "array", "items": {"description": "anything"}}, ("json", "(JSON)")),
        ({"type": "array", "items": True}, ("json", "(JSON)")),
        ({"type": "array", "items": [{"type": "string"}]}, ("json", "(JSON)")),
        ({"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "string"}}, ("json", "(JSON)")),
        ({"prefixItems": [{"type": "string"}]}, ("json", "(JSON)")),
    ],
)  # fmt: skip
def test_lists(schema: Any, flag: tuple[str, str]) -> None:
    assert flag_for(schema, n={"type": "integer"}) == flag


@pytest.mark.parametrize(
    ("schema", "description"),
    [
        (
            {"type": "string", "description": "Day", "default": "now", "format": "date"},
            "Day. Default: now. Format: date",
        ),
        ({"type": "integer", "minimum": 0, "maximum": 9.5}, "Min: 0. Max: 9.5"),
        ({"type": "boolean", "default": False}, "Default: false"),
        ({"type": "string", "default": None, "format": None}, ""),
        ({"type": "string", "description": "What?", "default": "é"}, "What? Default: é"),
        ({"type": "string", "default": ["é"]}, 'Default: ["é"]'),
        ({"type": "string", "default": "x" * 500}, f"Default: {'x' * 199}…"),
        ({"type": "string", "description": "y" * 1_000}, "y" * 1_000),
        ({"type": "string", "description": "y" * 1_001}, "y" * 999 + "…"),
        ({"type": "string", "description": 5}, ""),
        ({"type": "string", "description": " kept \n"}, " kept \n"),
    ],
)
def test_descriptions(schema: Any, description: str) -> None:
    assert flag_for(schema) == (schema["type"], description)


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/a"},
        {"$ref": "#/properties/x"},
        {"$ref": "https://example.com/schema.json"},
        {"anyOf": [{"$ref": "#/properties/x"}, {"type": "string"}]},
        {"type": "array", "items": {"$ref": "#/properties/x"}},
        {"properties": {"x": {"$ref": "#/properties/x"}}},
    ],
)
def test_references_in_a_circle_or_out_of_the_document_are_json(schema: dict[str, Any]) -> None:
    assert flag_for(schema, a={"$ref": "#/$defs/b"}, b={"$ref": "#/$defs/a"}) == ("json", "(JSON)")


def test_a_description_beside_a_reference_that_leads_nowhere_is_kept() -> None:
    assert flag_for({"$ref": "#/nowhere", "description": "Site"}) == ("json", "Site (JSON)")


@pytest.mark.parametrize(
    ("schema", "names"),
    [({}, []), ({"type": "null"}, []), ({"type": ["null", "object", 5]}, ["object"]), ({"type": {"a": 1}}, [])],
)
def test_type_names(schema: dict[str, Any], names: list[str]) -> None:
    assert type_names(schema) == names


@settings(deadline=None)
@given(schema=ANY_SCHEMA | JSON)
def test_any_schema_has_a_kind_and_a_description(schema: Any) -> None:
    document = SchemaDocument(as_dict(schema))
    kind = kind_of(document, without_null(document, schema))
    assert kind.type in {"string", "integer", "number", "boolean", "array", "json"}
    assert isinstance(kind, Kind)
    assert len(describe(as_dict(schema), kind)) <= 1_000
