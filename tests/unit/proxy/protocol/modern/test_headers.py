"""The values of `Mcp-*` headers, and the arguments that they repeat."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp.shared.inbound import encode_header_value, find_invalid_x_mcp_header, x_mcp_header_map

from proxy.protocol.modern.headers import contradiction, decoded, read
from proxy.protocol.modern.param_headers import annotated
from proxy.protocol.modern.param_headers import contradiction as of_arguments

VERSION = "2026-07-28"


@settings(deadline=None)
@given(st.text(max_size=30))
def test_a_text_comes_back_from_what_the_official_sdk_sends(text: str) -> None:
    assert decoded(encode_header_value(text)) == text


@settings(deadline=None)
@given(st.binary(max_size=12))
def test_only_one_spelling_of_a_payload_is_accepted(payload: bytes) -> None:
    value = "=?base64?" + base64.b64encode(payload).decode().rstrip("=") + "?="
    found = decoded(value)
    assert found is None or encode_header_value(found) == value or value == f"=?base64?{_coded(found)}?="


def _coded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("", ""),
        ("=?base64?SGVsbG8=?=", "Hello"),
        ("=?base64?SGVsbG8?=", None),
        ("=?base64?SGVs!!!bG8=?=", None),
        ("=?base64?SGVsbG9=?=", None),  # bits left over
        ("=?base64?/w==?=", None),  # no UTF-8
        ("=?base64?SGVs bG8=?=", None),
        ("=?base64?SGVsbG8=", "=?base64?SGVsbG8="),
        ("SGVsbG8=?=", "SGVsbG8=?="),
        ("=?BASE64?SGVsbG8=?=", "=?BASE64?SGVsbG8=?="),
        ("=?base64??=", ""),
    ],
)
def test_the_sentinel(value: str, text: str | None) -> None:
    assert decoded(value) == text


def test_headers_are_read_once_and_without_the_space_around_them() -> None:
    raw = [
        (b"mcp-method", b" \ttools/call "),
        (b"mcp-name", b"a"),
        (b"mcp-name", b"a"),
        (b"mcp-param-x", "é".encode()),
        (b"mcp-param-y", b"a\x01"),
        (b"mcp-param-z", b""),
        (b"authorization", b"Bearer x"),
    ]
    assert read(raw) == {
        "mcp-method": "tools/call",
        "mcp-name": None,
        "mcp-param-x": None,
        "mcp-param-y": None,
        "mcp-param-z": "",
    }


def test_each_standard_header_is_named_in_its_fault() -> None:
    said = {"mcp-protocol-version": VERSION, "mcp-method": "prompts/get", "mcp-name": "a"}
    assert contradiction(said, VERSION, "prompts/get", {"name": "a"}) is None
    assert contradiction(said, VERSION, "resources/read", {"uri": "a"}) == "Mcp-Method does not say what the body says."
    assert contradiction(said, "2031", "prompts/get", {}) == "MCP-Protocol-Version does not say what the body says."
    without = {name: value for name, value in said.items() if name != "mcp-name"}
    assert contradiction(without, VERSION, "prompts/get", {"name": "a"}) == "Mcp-Name is missing."
    assert contradiction(without, VERSION, "prompts/get", {"name": 5}) is None, "another check refuses that"
    twice = {**said, "mcp-name": None}
    assert contradiction(twice, VERSION, "prompts/get", {"name": "a"}) == "Mcp-Name is malformed or was sent twice."


def marked(kind: Any = "string", name: Any = "Region") -> dict[str, Any]:
    """A schema with an annotation."""
    return {"type": kind, "x-mcp-header": name}


SCHEMAS = [
    ({"properties": {"a": marked()}}, [("Region", ("a",))]),
    ({"properties": {"a": {"type": "object", "properties": {"b": marked("integer")}}}}, [("Region", ("a", "b"))]),
    ({"properties": {"a": marked(), "b": marked("boolean", "Dry")}}, [("Region", ("a",)), ("Dry", ("b",))]),
    ({"properties": {"x-mcp-header": {"type": "string"}}}, []),
    ({"properties": {"a": {"default": {"x-mcp-header": "no"}, "enum": [{"x-mcp-header": 1}]}}}, []),
    ({}, []),
    ({"properties": {"a": marked("number")}}, None),
    ({"properties": {"a": marked(["string", "null"])}}, None),
    ({"properties": {"a": {"x-mcp-header": "Region"}}}, None),
    ({"properties": {"a": marked(name="")}}, None),
    ({"properties": {"a": marked(name="a b")}}, None),
    ({"properties": {"a": marked(name="a\r\n")}}, None),
    ({"properties": {"a": marked(name=5)}}, None),
    ({"properties": {"a": marked(), "b": marked(name="REGION")}}, None),
    ({"properties": {"a": {"type": "array", "items": marked()}}}, None),
    ({"properties": {"a": {"anyOf": [marked()]}}}, None),
    ({"allOf": [{"properties": {"a": marked()}}]}, None),
    ({"$defs": {"d": marked()}}, None),
    ({"if": {"properties": {"a": marked()}}}, None),
    ({"additionalProperties": marked()}, None),
    (marked(), None),
]


@pytest.mark.parametrize(("schema", "expected"), SCHEMAS, ids=lambda each: str(each)[:60])
def test_annotations_count_where_arguments_are(schema: dict[str, Any], expected: Any) -> None:
    found = annotated(schema)
    assert (None if found is None else [(each.name, each.path) for each in found]) == expected
    # The official SDK agrees.
    assert (find_invalid_x_mcp_header(schema) is None) is (expected is not None)
    if expected is not None:
        assert x_mcp_header_map(schema) == {path: name for name, path in expected}


def test_a_schema_with_an_invalid_annotation_asks_for_nothing() -> None:
    bad = {"inputSchema": {"properties": {"a": marked(), "b": marked("number", "N")}}}
    assert of_arguments(msgspec.json.encode(bad), {"a": "x"}, {}) is None
    good = msgspec.json.encode({"inputSchema": {"properties": {"a": marked()}}})
    assert of_arguments(good, {"a": "x"}, {}) == "Mcp-Param-Region is missing."
    assert of_arguments(good, {"a": 10**200}, {"mcp-param-region": "1" + "0" * 200}) is None
    assert of_arguments(b'{"inputSchema":null,"x-mcp-header":1}', {}, {}) is None
