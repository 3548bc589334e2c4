"""Reserved members of `_meta` go no further; everything else keeps its bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proxy.protocol.progress import Wanted, relayed, split_meta
from proxy.protocol.replies import VendorNotification, VendorResult, parse_message
from proxy.protocol.reserved_meta import cleaned_notification, cleaned_result, is_reserved
from proxy.protocol.tool_definitions import approvable_json, exposed_definition

RESERVED = "io.modelcontextprotocol/serverInfo"


@pytest.mark.parametrize(
    ("key", "reserved"),
    [
        ("io.modelcontextprotocol/protocolVersion", True),
        ("org.modelcontextprotocol.api/x", True),
        ("modelcontextprotocol.io/x", True),
        ("mcp.dev/x", True),
        ("dev.mcp/x", True),
        ("tools.mcp.com/x", True),
        ("io.modelcontextprotocol/", True),
        ("com.example.mcp/x", False),
        ("com.example/mcp", False),
        ("mcp/x", False),
        ("io.modelcontextprotocols/x", False),
        ("gateway/unavailable", False),
        ("traceparent", False),
        ("progressToken", False),
        ("io.modelcontextprotocol", False),
        ("", False),
    ],
)
def test_which_keys_are_reserved(key: str, reserved: bool) -> None:
    assert is_reserved(key) is reserved


def test_a_callers_reserved_members_stay_here() -> None:
    meta = {RESERVED: {}, "progressToken": 7, "traceparent": "00-1", "com.example/x": [1]}
    assert split_meta(meta) == (7, {"traceparent": "00-1", "com.example/x": [1]})
    assert split_meta({RESERVED: {}}) == (None, None)


def test_a_vendors_reserved_members_stay_out_of_its_result() -> None:
    blocks = b'[{"type":"text","text":"a","_meta":{"dev.mcp/x":1,"own":2}},{"type":"text", "text":"b"}'
    resource = b'{"type":"resource","resource":{"uri":"u","text":"t","_meta":{"io.modelcontextprotocol/ui":1}}}'
    raw = (
        b'{"content":%b,%b],"structuredContent":{"n": 1.0,"_meta":{"io.modelcontextprotocol/x":1}},'
        b'"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"x"},"com.example/cost": 1e3}}' % (blocks, resource)
    )
    cleaned = cleaned_result(raw)
    assert json.loads(cleaned) == {
        "content": [
            {"type": "text", "text": "a", "_meta": {"own": 2}},
            {"type": "text", "text": "b"},
            {"type": "resource", "resource": {"uri": "u", "text": "t"}},
        ],
        "structuredContent": {"n": 1.0, "_meta": {"io.modelcontextprotocol/x": 1}},  # a tool's own data
        "_meta": {"com.example/cost": 1000.0},
    }
    assert b'{"type":"text", "text":"b"}' in cleaned
    assert b'{"n": 1.0,' in cleaned
    assert b"1e3" in cleaned


@pytest.mark.parametrize(
    "raw",
    [
        b'{"content":[ ],"_meta":{"com.example/x" : 1}}',
        b'{"content":[{"_meta":{"own":1}}, 5, {"_meta":7}],"_meta":null}',
        b'{"content":{"_meta":{"io.modelcontextprotocol/x":1}}}',
        b'{"content":"the \\"_meta\\" of a text"}',
    ],
)
def test_a_result_without_reserved_members_keeps_its_bytes(raw: bytes) -> None:
    assert cleaned_result(raw) is raw
    message = parse_message(b'{"jsonrpc":"2.0","id":1,"result":%b}' % raw)
    assert isinstance(message, VendorResult)
    assert message.raw_result == raw


@pytest.mark.parametrize(
    ("hidden", "left"),
    [
        (rb'{"\u005fmeta":{"io.modelcontext\u0070rotocol\/serverInfo":1},"content":[]}', {"content": []}),
        (rb'{"content":[{"type":"text","\u005Fm\u0065ta":{"mcp.dev/x":1}}]}', {"content": [{"type": "text"}]}),
        (
            rb'{"content":[{"type":"resource","resource":{"uri":"a:b","_met\u0061":{"mcp.dev/x":1}}}]}',
            {"content": [{"type": "resource", "resource": {"uri": "a:b"}}]},
        ),
    ],
)
def test_a_reserved_member_cannot_hide_behind_an_escape(hidden: bytes, left: object) -> None:
    message = parse_message(b'{"jsonrpc":"2.0","id":1,"result":%b}' % hidden)
    assert isinstance(message, VendorResult)
    assert json.loads(message.raw_result) == left


def _note(method: str, **params: Any) -> VendorNotification:
    return VendorNotification(method, json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode())


@pytest.mark.parametrize("method", ["notifications/progress", "notifications/message"])
def test_notifications_lose_theirs_too(method: str) -> None:
    note = _note(method, progressToken=3, progress=1, data="d", _meta={RESERVED: {}, "own": 1})
    passed = relayed(note, 3, Wanted("mine"))
    assert passed is not None
    params = json.loads(passed)["params"]
    assert params["_meta"] == {"own": 1}
    assert params["data"] == "d"
    assert cleaned_notification(b'{"params":[]}') == b'{"params":[]}'


def test_tool_definitions_lose_theirs_too() -> None:
    definition = {"name": "a", "description": "d", "inputSchema": {"type": "object"}}
    shown = exposed_definition({**definition, "_meta": {RESERVED: {}, "ui": {"visibility": ["app"]}}}, "v_a")
    assert shown["_meta"] == {"ui": {"visibility": ["app"]}}
    assert "_meta" not in exposed_definition({**definition, "_meta": {RESERVED: {}}}, "v_a")
    assert approvable_json({**definition, "_meta": {RESERVED: {}}}) == approvable_json(definition)
