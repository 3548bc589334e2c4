"""Commands and flags for any schema, and dotted arguments folded back to what the vendor asked for."""

import copy
import random
import time
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from proxy.protocol.cli_schema import commands, fold_dotted
from proxy.protocol.json_schema import flatten_root
from tests.unit.proxy.protocol.schemas import ANY_SCHEMA, JSON

TYPES = {"string", "integer", "number", "boolean", "array", "json"}
SITE = {"type": "object", "properties": {"id": {"type": "integer"}, "name": {"type": "string"}}, "required": ["id"]}


def tool(name: str, schema: Any = None, **members: Any) -> dict[str, Any]:
    return {"name": name, "description": "d", "inputSchema": schema or {"type": "object"}} | members


def flags_for(schema: Any) -> list[dict[str, Any]]:
    (command,) = commands("acme", [tool("t", schema)])
    flags: list[dict[str, Any]] = command["flags"]
    return flags


def flag_for(schema: Any, **definitions: Any) -> tuple[str, str]:
    (flag,) = flags_for({"type": "object", "properties": {"x": schema}, "$defs": definitions})
    assert (flag["name"], flag["required"]) == ("x", False)
    return flag["type"], flag["description"]


def test_a_command_as_the_specification_shows_it() -> None:
    schema = {
        "type": "object",
        "properties": {"limit": {"type": "integer", "description": "How many"}, "site_id": {"type": "string"}},
        "required": ["site_id"],
    }
    assert commands("acme", [tool("acme_list_devices", schema, description="Lists devices.")]) == [
        {
            "command": "list-devices",
            "description": "Lists devices.",
            "flags": [
                {"name": "site_id", "type": "string", "required": True, "description": ""},
                {"name": "limit", "type": "integer", "required": False, "description": "How many"},
            ],
        }
    ]


def test_commands_are_sorted_and_distinguished() -> None:
    listed = [tool("zeta"), tool("list"), tool("acme_list"), tool("a.b"), tool("a/b")]
    names = [each["command"] for each in commands("acme", listed)]
    assert names == ["a-b", "acme_a_b_c14cdd", "acme_list", "list", "zeta"]


def test_tools_that_are_not_allowed_are_left_out_and_no_command_changes_its_meaning() -> None:
    listed = [tool("acme_list", description="own"), tool("list", description="other")]
    assert [each["command"] for each in commands("acme", listed, allowed={"acme_list"})] == ["acme_list"]
    assert [each["command"] for each in commands("acme", listed, allowed={"list"})] == ["list"]
    assert commands("acme", listed, allowed=()) == []


def test_what_is_no_tool_is_no_command() -> None:
    listed = [None, "t", {}, {"name": 5}, tool("t", title="first"), tool("t", title="second", description="")]
    assert commands("acme", listed) == commands("acme", [tool("t")])


@pytest.mark.parametrize("schema", [None, 5, "x", [], True, {}, {"properties": {}}, {"properties": 5}, {"$ref": "#/x"}])
def test_no_properties_no_flags(schema: Any) -> None:
    assert commands("acme", [{"name": "t", "inputSchema": schema}])[0]["flags"] == []
    assert commands("acme", [{"name": "t"}]) == [{"command": "t", "description": "t", "flags": []}]


def test_required_flags_come_first_and_the_rest_in_schema_order() -> None:
    schema = {"properties": {key: {"type": "string"} for key in "zayb"}, "required": ["b", "a", "unknown"]}
    assert [(flag["name"], flag["required"]) for flag in flags_for(schema)] == [
        ("a", True),
        ("b", True),
        ("z", False),
        ("y", False),
    ]


@pytest.mark.parametrize("name", ["a b", "ünï", "$ref", "", "a.b", "UPPER_case-x"])
def test_a_flag_is_called_exactly_like_its_property(name: str) -> None:
    assert flags_for({"properties": {name: {"type": "string"}}})[0]["name"] == name


def test_small_flat_objects_become_dotted_flags() -> None:
    schema = {"properties": {"site": SITE | {"description": "gone"}, "x": {"type": "string"}}, "required": ["site"]}
    assert flags_for(schema) == [
        {"name": "site.id", "type": "integer", "required": True, "description": ""},
        {"name": "site.name", "type": "string", "required": False, "description": ""},
        {"name": "x", "type": "string", "required": False, "description": ""},
    ]


def test_a_dotted_flag_is_required_only_if_both_levels_are() -> None:
    assert [flag["required"] for flag in flags_for({"properties": {"site": SITE}})] == [False, False]


@pytest.mark.parametrize(
    "schema",
    [
        SITE,
        {"anyOf": [SITE, {"type": "null"}]},
        SITE | {"type": ["object", "null"]},
        SITE | {"additionalProperties": False},
        {"$ref": "#/$defs/site"},
        {"allOf": [{"$ref": "#/$defs/site"}]},
        {"properties": SITE["properties"]},
        {"properties": {"id": {"$ref": "#/$defs/site/properties/id"}, "name": {"type": "string"}}},
    ],
)
def test_objects_that_are_expanded(schema: dict[str, Any]) -> None:
    flags = flags_for({"properties": {"site": schema}, "$defs": {"site": SITE}})
    assert [(flag["name"], flag["type"]) for flag in flags] == [("site.id", "integer"), ("site.name", "string")]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {f"p{number}": {"type": "string"} for number in range(11)}},
        {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}}},
        {"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {"type": "string"}}}}},
        {"type": "object", "properties": {"a": {"type": "string"}, "b": False}},
        {"type": "object", "properties": {}},
        SITE | {"additionalProperties": True},
        SITE | {"additionalProperties": {"type": "string"}},
        SITE | {"patternProperties": {}},
        SITE | {"oneOf": [{"required": ["id"]}, {"required": ["name"]}]},
    ],
)
def test_objects_that_stay_one_flag(schema: dict[str, Any]) -> None:
    assert flag_for(schema) == ("json", "(JSON)")


def test_ten_members_are_still_expanded() -> None:
    schema = {"type": "object", "properties": {f"p{number}": {"type": "string"} for number in range(10)}}
    assert len(flags_for({"properties": {"x": schema}})) == 10


def test_no_two_flags_share_a_name() -> None:
    inner, outer = {"properties": {"c": {"type": "string"}}}, {"properties": {"b.c": {"type": "string"}}}
    taken = {"properties": {"site": SITE, "site.id": {"type": "string"}}}
    assert [flag["name"] for flag in flags_for(taken)] == ["site", "site.id"]
    assert [flag["name"] for flag in flags_for({"properties": {"a.b": inner, "a": outer}})] == ["a.b.c", "a"]


def test_a_choice_at_the_root() -> None:
    schema = {
        "properties": {"z": {"type": "string"}},
        "anyOf": [
            {"properties": {"id": {"type": "integer"}, "kind": {"const": "a"}}, "required": ["id", "kind"]},
            {"properties": {"name": {"type": "string"}, "kind": {"const": "b"}}, "required": ["name", "kind"]},
        ],
    }
    (command,) = commands("acme", [tool("t", schema)])
    assert command["description"] == "d\n\nRequired arguments: at least one of (id, kind), (kind, name)."
    assert [(flag["name"], flag["type"], flag["required"], flag["description"]) for flag in command["flags"]] == [
        ("kind", "string", True, "One of: a, b"),
        ("z", "string", False, ""),
        ("id", "integer", False, ""),
        ("name", "string", False, ""),
    ]


def test_a_root_behind_a_reference() -> None:
    schema = {
        "$ref": "#/$defs/input",
        "$defs": {"input": {"properties": {"a": {"type": "integer"}}, "required": ["a"]}},
    }
    assert flags_for(schema) == [{"name": "a", "type": "integer", "required": True, "description": ""}]


def test_a_schema_nested_too_deeply_has_no_flags() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(3_000):
        schema = {"anyOf": [schema, {"type": "null"}]}
    assert flags_for({"properties": {"x": schema}}) == []
    assert fold_dotted({"x.y": 1}, {"properties": {"x": schema}}) == {"x.y": 1}


def test_a_schema_that_multiplies_itself_takes_no_time() -> None:
    definitions = {
        f"d{level}": {"anyOf": [{"$ref": f"#/$defs/d{level + 1}", "title": str(number)} for number in range(200)]}
        for level in range(6)
    }
    started_s = time.process_time()
    schema = {"properties": {f"p{n}": {"$ref": "#/$defs/d0"} for n in range(300)}, "$defs": definitions}
    assert {flag["type"] for flag in flags_for(schema)} == {"json"}
    assert time.process_time() - started_s < 20  # a guard against hanging, not a measurement


@settings(deadline=None)
@given(schema=ANY_SCHEMA | JSON)
@example(schema={"properties": {"": {"properties": {"": {"const": None}}}}})
def test_any_schema_has_flags_of_the_one_form(schema: Any) -> None:
    before = copy.deepcopy(schema)
    first = commands("acme", [tool("t", schema)])
    assert schema == before
    assert first == commands("acme", [tool("t", copy.deepcopy(schema))])
    flags = first[0]["flags"]
    assert all(list(flag) == ["name", "type", "required", "description"] for flag in flags)
    assert all(flag["type"] in TYPES and type(flag["required"]) is bool for flag in flags)
    assert all(type(flag["name"]) is type(flag["description"]) is str for flag in flags)
    assert [flag["required"] for flag in flags] == sorted((flag["required"] for flag in flags), reverse=True)
    names = [flag["name"] for flag in flags]
    assert len(set(names)) == len(names)


@settings(deadline=None)
@given(names=st.sets(st.text("ab_.-", min_size=1, max_size=4), max_size=6), seed=st.integers())
def test_the_order_of_a_vendors_list_does_not_matter(names: set[str], seed: int) -> None:
    listed = [tool(name, title=name, description="") for name in sorted(names)]
    shuffled = random.Random(seed).sample(listed, len(listed))
    assert commands("a", shuffled) == commands("a", listed)
    assert len({each["command"] for each in commands("a", listed)}) == len(names)


FOLDING = {"properties": {"site": SITE, "a.b": {"type": "string"}, "free": {"type": "object"}, "o.p": SITE}}


@pytest.mark.parametrize(
    ("args", "folded"),
    [
        ({}, {}),
        ({"x": 1}, {"x": 1}),
        ({"site.id": 7}, {"site": {"id": 7}}),
        ({"site.id": 7, "site.name": None}, {"site": {"id": 7, "name": None}}),
        ({"site": {"name": "n"}, "site.id": 7}, {"site": {"name": "n", "id": 7}}),
        ({"site": {"id": 7}}, {"site": {"id": 7}}),
        ({"a.b": 1}, {"a.b": 1}),
        ({"o.p.id": 1}, {"o.p": {"id": 1}}),
        ({"site.other": 1, "free.x": 2, "y.z": 3, ".": 4}, {"site.other": 1, "free.x": 2, "y.z": 3, ".": 4}),
    ],
)
def test_dotted_arguments_are_folded(args: dict[str, Any], folded: dict[str, Any]) -> None:
    before = copy.deepcopy(args)
    assert fold_dotted(args, FOLDING) == folded
    assert args == before


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"site": {"id": 1}, "site.id": 2}, "'site.id' is given both on its own and inside 'site'."),
        ({"site.id": 1, "site": {"id": 1}}, "'site.id' is given both on its own and inside 'site'."),
        ({"site": "x", "site.id": 2}, "'site.id' is given, so 'site' must be an object."),
        ({"site": None, "site.id": 2}, "'site.id' is given, so 'site' must be an object."),
        ({"site": [], "site.id": 2}, "'site.id' is given, so 'site' must be an object."),
    ],
)
def test_arguments_that_contradict_each_other(args: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the message is compared whole
        fold_dotted(args, FOLDING)
    assert str(refused.value) == message


def test_arguments_without_dots_are_not_even_copied() -> None:
    args = {"site": {"id": 1}}
    assert fold_dotted(args, FOLDING) is args


@pytest.mark.parametrize("schema", [None, True, [], "x", {}, {"properties": 5}])
def test_without_a_schema_nothing_is_folded(schema: object) -> None:
    assert fold_dotted({"site.id": 1}, schema) == {"site.id": 1}


@settings(deadline=None)
@given(schema=ANY_SCHEMA, args=st.dictionaries(st.sampled_from(["a", "a.a", "a.b", "a.b.c", "b", "b.a", ""]), JSON))
def test_folding_loses_no_argument_whatever_the_schema(schema: Any, args: dict[str, Any]) -> None:
    try:
        folded = fold_dotted(args, schema)
    except ValueError:
        return
    unfolded = {
        key: value
        for name, value in folded.items()
        for key, value in (
            [(name, value)] if name in args else [(f"{name}.{inner}", each) for inner, each in value.items()]
        )
    }
    for name, value in args.items():
        parent, _, member = name.rpartition(".")
        assert unfolded[name] == value if name in unfolded else folded[parent][member] == value


@settings(deadline=None)
@given(schema=ANY_SCHEMA)
def test_every_flag_we_show_can_be_given(schema: Any) -> None:
    flags = flags_for(schema)
    folded = fold_dotted({flag["name"]: number for number, flag in enumerate(flags)}, schema)
    shown = {flag["name"] for flag in flags}
    for name, value in folded.items():
        assert name in shown or all(f"{name}.{member}" in shown for member in value)


def dotted_places(schema: Any) -> dict[str, tuple[str, str]]:
    """The (parent, member) of each dotted flag that is shown, read from the list of flags alone."""
    properties = flatten_root(schema)[0].get("properties")
    named = set(properties) if isinstance(properties, dict) else set()
    places = {}
    for flag in flags_for(schema):
        name = flag["name"]
        parents = [name[:at] for at, character in enumerate(name) if character == "." and name[:at] in named]
        if name not in named and len(parents) == 1:
            places[name] = (parents[0], name[len(parents[0]) + 1 :])
    return places


_FLAT = st.fixed_dictionaries(
    {"type": st.just("object"), "properties": st.dictionaries(st.sampled_from(["a", "b.c", "c"]), st.just({}))}
)
_NESTED = st.fixed_dictionaries(
    {"type": st.just("object"), "properties": st.dictionaries(st.sampled_from(["a", "b", "a.b", "b.a"]), _FLAT)}
)


@settings(deadline=None)
@given(schema=_NESTED | ANY_SCHEMA, others=st.dictionaries(st.sampled_from(["a.x", "b.c", "x.y", "."]), st.integers()))
@example(schema={"type": "object", "properties": {"site": SITE}}, others={"site.x": 1})
@example(schema={"properties": None}, others={})
@example(schema={"properties": 5}, others={})
def test_the_flags_we_show_and_no_others_are_folded(schema: Any, others: dict[str, int]) -> None:
    shown = {flag["name"] for flag in flags_for(schema)}
    places = dotted_places(schema)
    args = others | {name: number for number, name in enumerate(places)}
    folded = fold_dotted(args, schema)
    for name, (parent, member) in places.items():
        assert name not in folded
        assert folded[parent][member] == args[name]
    for name in others:
        assert name in shown or folded[name] == others[name]


class CountedList(list[Any]):
    """Says how many of its members were read, by all of its kind."""

    read = 0

    def __iter__(self) -> Any:
        for each in super().__iter__():
            CountedList.read += 1
            yield each


class Untouchable(dict[str, Any]):
    """A part of a schema that no flag refers to."""

    def values(self) -> Any:
        raise AssertionError("looked through at every call")

    items = __iter__ = values


def objects_of(member: Any) -> dict[str, Any]:
    return {f"p{each}": {"type": "object", "properties": {str(n): member for n in range(10)}} for each in range(300)}


LARGE = 20_000


@pytest.mark.parametrize(
    "shared",
    [
        {"type": "string", "default": CountedList(range(LARGE))},
        {"enum": CountedList(str(each) for each in range(LARGE))},
        {"type": CountedList(["string"] * LARGE)},
        {"type": "object", "properties": {"a": {}}, "required": CountedList(["a"] * LARGE)},
        {"anyOf": CountedList([{"type": "string"}] * LARGE)},
        {"allOf": CountedList([{"type": "string"}] * LARGE)},
    ],
    ids=["default", "enum", "type", "required", "anyOf", "allOf"],
)
def test_what_is_referred_to_often_is_not_read_as_often(shared: dict[str, Any]) -> None:
    again = {"$ref": "#/$defs/large"}
    schema = {
        "type": "object",
        "properties": {"site": SITE} | objects_of(again),
        "anyOf": [again] * 300,
        "$defs": {"large": shared, "other": Untouchable(x={})},
    }
    CountedList.read = 0
    fold_dotted({"site.id": 1}, schema)
    assert CountedList.read < 5 * LARGE
    CountedList.read = 0
    commands("acme", [tool("t", schema | {"$defs": {"large": shared}})])
    assert CountedList.read < 20 * LARGE  # a few more: how deep it is, and the words on the choice


def test_a_small_object_is_folded_beside_however_many_properties_that_follow() -> None:
    following = {f"p{number}": {"type": "string"} for number in range(20)}
    schema = {"type": "object", "properties": {"site": SITE} | following, "$defs": {"never": Untouchable(x={})}}
    assert fold_dotted({"site.id": 1, "p1": "."}, schema) == {"site": {"id": 1}, "p1": "."}
