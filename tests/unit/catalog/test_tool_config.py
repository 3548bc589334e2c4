"""VENDOR_TOOL_CONFIG: what it says, what it outweighs, and that a slip in it stops the start with its key."""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import Any

import pytest

from gateway.catalog.tool_config import ToolConfig, ToolConfigError, ToolPolicy, parse_tool_config
from gateway.catalog.vendor import ToolOverride, Vendor
from gateway.settings import tools


def vendor(**overrides: ToolOverride) -> Vendor:
    return Vendor(
        slug="acme", name="Acme", url="https://a.example/mcp", tool_prefix="acme", tools=MappingProxyType(overrides)
    )


def config(**of_acme: Any) -> ToolConfig:
    return parse_tool_config(json.dumps({"acme": of_acme}))


def hinting(hint: object) -> dict[str, Any]:
    return {"name": "t", "annotations": {"readOnlyHint": hint}}


@pytest.mark.parametrize("text", ["", " \n", "{}", '{"acme":{}}', '{"other":{"ttl":5,"tools":{"t":{"ttl":7}}}}'])
def test_nothing_said_leaves_the_vendors_word_and_the_default(text: str) -> None:
    assert parse_tool_config(text).policy(vendor(), "t", hinting(True)) == ToolPolicy(True, 60)
    assert parse_tool_config(text).policy(vendor(), "t", {"name": "t"}) == ToolPolicy(False, 60)


@pytest.mark.parametrize(
    ("annotations", "read_only"),
    [
        ({"readOnlyHint": True}, True),
        ({"readOnlyHint": False}, False),
        ({"readOnlyHint": 1}, False),
        ({"readOnlyHint": "true"}, False),
        ({"readonlyhint": True}, False),
        ({}, False),
        (None, False),
        ([], False),
    ],
)
def test_a_tool_is_read_only_if_it_says_exactly_that(annotations: object, read_only: bool) -> None:
    assert ToolConfig().policy(vendor(), "t", {"annotations": annotations}).read_only is read_only


@pytest.mark.parametrize("hint", [True, False, None])
@pytest.mark.parametrize("shipped", [True, False, None])
@pytest.mark.parametrize("said", [True, False])
def test_whoever_runs_the_gateway_has_the_last_word(hint: bool | None, shipped: bool | None, said: bool) -> None:
    policy = config(tools={"t": {"readOnly": said}}).policy(vendor(t=ToolOverride(shipped)), "t", hinting(hint))
    assert policy == ToolPolicy(said, 60, named=True)


@pytest.mark.parametrize("hint", [True, False])
@pytest.mark.parametrize("shipped", [True, False])
def test_the_catalog_outweighs_the_vendor(hint: bool, shipped: bool) -> None:
    assert ToolConfig().policy(vendor(t=ToolOverride(shipped)), "t", hinting(hint)).read_only is shipped


@pytest.mark.parametrize(
    ("ttl_s", "shipped", "hint", "read_only"),
    [
        (300, None, None, True),
        (0, None, None, False),
        (300, None, False, False),
        (300, False, None, False),
        (300, False, True, False),
        (0, None, True, True),
    ],
)
def test_a_time_alone_makes_a_tool_read_only_unless_somebody_says_it_writes(
    ttl_s: int, shipped: bool | None, hint: bool | None, read_only: bool
) -> None:
    policy = config(tools={"t": {"ttl": ttl_s}}).policy(vendor(t=ToolOverride(shipped)), "t", hinting(hint))
    assert policy.read_only is read_only


@pytest.mark.parametrize(
    ("of_acme", "shipped_s", "ttl_s"),
    [
        ({"ttl": 10, "tools": {"t": {"ttl": 20}}}, 30, 20),
        ({"ttl": 10, "tools": {"t": {"readOnly": True}}}, 30, 10),
        ({"ttl": 0}, 30, 0),
        ({"tools": {"other": {"ttl": 20}}}, 30, 30),
        ({}, 0, 0),
        ({}, None, 60),
        ({"ttl": 3600}, None, 3600),
    ],
)
def test_the_most_particular_time_of_the_operator_counts_then_the_catalogs(
    of_acme: dict[str, Any], shipped_s: int | None, ttl_s: int
) -> None:
    policy = config(**of_acme).policy(vendor(t=ToolOverride(None, shipped_s)), "t", hinting(True))
    assert policy.ttl_s == ttl_s
    assert policy.is_cacheable is (ttl_s > 0)


def test_a_writing_tool_keeps_nothing() -> None:
    assert not ToolConfig().policy(vendor(), "t", {}).is_cacheable


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "it is not JSON"),
        ('{"acme":{},"acme":{}}', "key"),
        ("[]", "it must be an object"),
        ('{"acme":[]}', "acme must be an object"),
        ('{"acme":{"TTL":5}}', "acme.TTL is not known; known are tools and ttl"),
        ('{"acme":{"ttl":"60"}}', "acme.ttl must be a whole number of seconds from 0 to 3600"),
        ('{"acme":{"ttl":true}}', "acme.ttl must be"),
        ('{"acme":{"ttl":null}}', "acme.ttl must be"),
        ('{"acme":{"ttl":-1}}', "acme.ttl must be"),
        ('{"acme":{"ttl":3601}}', "acme.ttl must be"),
        ('{"acme":{"ttl":1.5}}', "acme.ttl must be"),
        ('{"acme":{"tools":["t"]}}', "acme.tools must be an object"),
        ('{"acme":{"tools":{"t":60}}}', "acme.tools.t must be an object"),
        ('{"acme":{"tools":{"t":{}}}}', "acme.tools.t must have ttl or readOnly"),
        ('{"acme":{"tools":{"t":{"readOnly":"yes"}}}}', "acme.tools.t.readOnly must be true or false"),
        ('{"acme":{"tools":{"t":{"readOnly":null}}}}', "acme.tools.t.readOnly must be true or false"),
        ('{"acme":{"tools":{"t":{"read_only":true}}}}', "acme.tools.t.read_only is not known"),
        ('{"acme":{"tools":{"":{"ttl":1}}}}', "acme.tools. must be a tool name"),
        ('{"acme":{"tools":{"a\\nb":{"ttl":1}}}}', "acme.tools.a?b must be a tool name"),
        ('{"acme":{"tools":{"' + "a" * 129 + '":{"ttl":1}}}}', "acme.tools.aaa"),
    ],
)
def test_a_slip_is_named(text: str, says: str) -> None:
    with pytest.raises(ToolConfigError) as refusal:
        parse_tool_config(text)
    assert says in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_slip_stops_the_start_with_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VENDOR_TOOL_CONFIG", '{"acme": {"ttl": "soon"}}')
    with pytest.raises(SystemExit) as stop:
        tools._tool_config()
    assert stop.value.code == 78
    line = (
        "Cannot start: VENDOR_TOOL_CONFIG cannot be used: acme.ttl must be a whole number of seconds from 0 to 3600.\n"
    )
    assert capsys.readouterr().err == line
    monkeypatch.setenv("VENDOR_TOOL_CONFIG", '{"acme": {"ttl": 5}}')
    assert tools._tool_config().policy(vendor(), "t", {}).ttl_s == 5
