"""The gateway's own requests in the modern revision, and what becomes of the results."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proxy.protocol.modern import headers, listed_tools, param_headers, vendor_requests
from proxy.protocol.replies import BadVendorReply

INFO = {"name": "mcp-gateway", "version": "1"}
META = "io.modelcontextprotocol/"


def test_each_request_says_its_version_and_its_capabilities() -> None:
    made = vendor_requests.with_meta({"name": "x", "_meta": {"traceparent": "00-1", f"{META}logLevel": "info"}}, INFO)
    assert made == {
        "name": "x",
        "_meta": {
            "traceparent": "00-1",
            f"{META}logLevel": "info",
            f"{META}protocolVersion": "2026-07-28",
            f"{META}clientCapabilities": {},
            f"{META}clientInfo": INFO,
        },
    }
    asked = vendor_requests.with_meta({}, INFO, token=0, log_level="error", capabilities={"elicitation": {}})["_meta"]
    assert (asked["progressToken"], asked[f"{META}logLevel"]) == (0, "error")
    assert asked[f"{META}clientCapabilities"] == {"elicitation": {}}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("acme_list", "acme_list"),
        ("a b", "a b"),
        ("", ""),
        (" a", "=?base64?IGE=?="),
        ("a\t", "=?base64?YQk=?="),
        ("a\r\nX: y", "=?base64?YQ0KWDogeQ==?="),
        ("grüße", "=?base64?Z3LDvMOfZQ==?="),
        ("=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?="),
        ("\udc80", "=?base64?Pw==?="),  # half a character, which UTF-8 does not have
    ],
)
def test_values_of_headers(text: str, value: str) -> None:
    assert headers.encoded(text) == value
    assert headers.decoded(value) == text.encode("utf-8", "replace").decode()


def test_headers_of_methods() -> None:
    assert headers.of_request("tools/list", {"name": "x"}) == {"Mcp-Method": "tools/list"}
    assert headers.of_request("tools/call", {"name": "ü"}) == {
        "Mcp-Method": "tools/call",
        "Mcp-Name": "=?base64?w7w=?=",
    }
    assert headers.of_request("resources/read", {"uri": "a://b"})["Mcp-Name"] == "a://b"


def tool(**properties: Any) -> dict[str, Any]:
    return {"name": "t", "inputSchema": {"type": "object", "properties": properties}}


REGION = {"type": "string", "x-mcp-header": "Region"}
COUNT = {"type": "integer", "x-mcp-header": "Count"}


@pytest.mark.parametrize(
    ("arguments", "sent"),
    [
        ({"region": "eu", "count": 2}, {"Mcp-Param-Region": "eu", "Mcp-Param-Count": "2"}),
        ({"region": None}, {}),
        ({"region": "ü"}, {"Mcp-Param-Region": "=?base64?w7w=?="}),
        ({"region": ["eu"], "count": 2.0, "other": "x"}, {"Mcp-Param-Count": "2"}),
    ],
)
def test_arguments_in_headers(arguments: dict[str, Any], sent: dict[str, str]) -> None:
    definition = json.dumps(tool(region=REGION, count=COUNT)).encode()
    assert param_headers.of_call(definition, arguments) == sent
    # The gateway's own check, as a server, agrees with what it sends as a client.
    said = {name.lower(): value for name, value in sent.items()}
    assert param_headers.contradiction(definition, arguments, said) is None


def test_tools_with_a_wrong_annotation_are_left_out() -> None:
    wrong = tool(region={"type": "array", "items": REGION})
    assert param_headers.of_call(json.dumps(wrong).encode(), {"region": ["eu"]}) == {}
    fine = [tool(region=REGION), tool(count={"type": "integer"})]
    listed = json.dumps({"resultType": "complete", "tools": [fine[0], wrong, fine[1]], "nextCursor": "c"}).encode()
    found = json.loads(listed_tools.usable(listed))
    assert (found["tools"], found["nextCursor"]) == (fine, "c")
    untouched = json.dumps({"tools": fine[1:]}).encode()
    assert listed_tools.usable(untouched) is untouched
    odd = b'{"tools":{"x-mcp-header":1}}'
    assert listed_tools.usable(odd) is odd


@pytest.mark.parametrize(
    "raw",
    [
        b'{"resultType":"complete","content":[],"isError":false}',
        b'{"content":[],"isError":false,"resultType":"complete"}',
        b'{"content":[], "resultType": "complete", "isError":false}',
    ],
)
def test_a_complete_result_is_as_the_earlier_revisions_have_it(raw: bytes) -> None:
    assert vendor_requests.result_type(raw) == "complete"
    assert json.loads(vendor_requests.without_type(raw)) == {"content": [], "isError": False}


def test_types_of_results() -> None:
    assert vendor_requests.result_type(b'{"content":[]}') is None
    assert vendor_requests.result_type(b'{"resultType":"task"}') == "task"
    assert vendor_requests.without_type(b'{"resultType":"complete"}') == b"{}"
    with pytest.raises(BadVendorReply):
        vendor_requests.result_type(b'{"resultType":7}')


@pytest.mark.parametrize(
    "odd",
    [
        b'"x-mcp-header"',
        b'[{"x-mcp-header":1}]',
        b'{"inputSchema":' + b'{"x-mcp-header":' * 9_000 + b"1" + b"}" * 9_001,
    ],
)
def test_an_entry_that_cannot_be_judged_is_left_to_the_reader_of_the_list(odd: bytes) -> None:
    listed = b'{"tools":[%b,{"name":"good"}]}' % odd
    found = listed_tools.usable(listed)
    assert found.endswith(b'{"name":"good"}]}')


def test_arguments_that_no_head_could_have_are_refused_here() -> None:
    schema = {"type": "object", "properties": {name: {"type": "string", "x-mcp-header": name} for name in ("a", "b")}}
    definition = json.dumps({"name": "write", "inputSchema": schema}).encode()
    half = "x" * (param_headers.MAX_CHARACTERS // 2)
    assert param_headers.of_call(definition, {"a": half, "b": half}) == {"Mcp-Param-a": half, "Mcp-Param-b": half}
    with pytest.raises(param_headers.TooLong):
        param_headers.of_call(definition, {"a": half, "b": half + "x"})
