"""MCP 2026-07-28: versions, headers and bodies that contradict each other; nothing of them reaches the vendor."""

from __future__ import annotations

import base64
import threading
from typing import Any

import pytest

from proxy.protocol.modern import param_headers
from tests.api.proxy.conftest import Agent, headers
from tests.api.proxy.modern import PATHS, VERSION, ask, bearer_of, call, error, meta, said
from tests.api.proxy.traces import rows
from tests.factories.tenant import Tenant
from tests.fakes.vendor import FakeVendor

REGION: dict[str, Any] = {
    "name": "fake_query",
    "description": "Queries a region.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "limit": {"type": "integer", "x-mcp-header": "Limit"},
            "deep": {
                "type": "object",
                "properties": {"dry": {"type": "boolean", "x-mcp-header": "Dry"}},
            },
            "free": {"type": "string"},
        },
    },
    "annotations": {"readOnlyHint": True},
}


def coded(text: str) -> str:
    """The sentinel form of a header's value."""
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


OK = (200, None)
UNKNOWN_TO_ALL = "2031-01-01"
EARLIER = "2025-11-25"
OF_THE_BODY = {
    "modern": meta(),
    "unknown": meta(protocolVersion=UNKNOWN_TO_ALL),
    "earlier": meta(protocolVersion=EARLIER),
    "none": meta(protocolVersion=...),
    "nothing reserved": {"traceparent": "00-1"},
    "a number": meta(protocolVersion=20260728),
    "null": meta(protocolVersion=None),
    "capabilities missing": meta(clientCapabilities=...),
    "capabilities a list": meta(clientCapabilities=[]),
    "client info a text": meta(clientInfo="x"),
    "log level unknown": meta(logLevel="loud"),
}
TABLE = [
    ("modern", VERSION, OK),
    ("modern", None, (400, -32020)),
    ("modern", EARLIER, (400, -32020)),
    ("modern", UNKNOWN_TO_ALL, (400, -32020)),
    ("modern", f"{VERSION},{VERSION}", (400, -32020)),
    ("modern", f" {VERSION}\t", OK),
    ("unknown", UNKNOWN_TO_ALL, (400, -32022)),
    ("unknown", None, (400, -32020)),
    ("unknown", VERSION, (400, -32020)),
    ("earlier", EARLIER, OK),
    ("earlier", None, OK),
    ("earlier", VERSION, (400, -32020)),
    ("earlier", UNKNOWN_TO_ALL, (400, -32602)),
    ("none", VERSION, (400, -32602)),
    ("none", EARLIER, OK),
    ("none", None, OK),
    ("none", UNKNOWN_TO_ALL, (400, -32602)),
    ("nothing reserved", VERSION, (400, -32602)),
    ("nothing reserved", EARLIER, OK),
    ("nothing reserved", None, OK),
    ("nothing reserved", UNKNOWN_TO_ALL, (400, -32602)),
    ("a number", VERSION, (400, -32602)),
    ("a number", None, (400, -32602)),
    ("null", VERSION, (400, -32602)),
    ("capabilities missing", VERSION, (400, -32602)),
    ("capabilities a list", VERSION, (400, -32602)),
    ("client info a text", VERSION, (400, -32602)),
    ("log level unknown", VERSION, (400, -32602)),
]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(("body", "header", "expected"), TABLE)
async def test_the_body_decides_and_the_header_is_checked(
    agent: Agent,
    tenant: Tenant,
    jwt: str,
    vendor: FakeVendor,
    path: str,
    body: str,
    header: str | None,
    expected: tuple[int, int | None],
) -> None:
    answer = await call(
        agent,
        bearer_of(tenant, jwt, path),
        "fake_write",
        meta=OF_THE_BODY[body],
        path=path,
        **{"MCP-Protocol-Version": header},
    )
    found = answer.json()
    assert (answer.status_code, found.get("error", {}).get("code")) == expected, found
    assert found["id"] == "r-1"
    assert vendor.seen["tools/call"] == (expected == OK)
    if expected == OK:
        assert ("resultType" in found["result"]) == (body == "modern")


async def test_an_unknown_version_is_told_which_are_served(agent: Agent, tenant: Tenant) -> None:
    long = "9" * 500
    answer = await ask(
        agent, tenant.agent_key, "server/discover", meta=meta(protocolVersion=long), **{"MCP-Protocol-Version": long}
    )
    assert error(answer) == (400, -32022)
    assert answer.json()["error"]["data"] == {"supported": [VERSION], "requested": "9" * 64}


async def test_client_info_may_be_missing(agent: Agent, tenant: Tenant) -> None:
    answer = await ask(agent, tenant.agent_key, "tools/list", meta=meta(clientInfo=...))
    assert answer.status_code == 200


STANDARD = [
    ({}, OK),
    ({"mcp-method": "tools/call", "Mcp-Method": None}, OK),
    ({"MCP-NAME": "fake_write", "Mcp-Name": None}, OK),
    ({"Mcp-Name": " fake_write  "}, OK),
    ({"Mcp-Name": coded("fake_write")}, OK),
    ({"Mcp-Method": None}, (400, -32020)),
    ({"Mcp-Name": None}, (400, -32020)),
    ({"Mcp-Method": ""}, (400, -32020)),
    ({"Mcp-Method": "tools/list"}, (400, -32020)),
    ({"Mcp-Method": "Tools/Call"}, (400, -32020)),
    ({"Mcp-Method": coded("tools/call")}, (400, -32020)),
    ({"Mcp-Name": "fake_list"}, (400, -32020)),
    ({"Mcp-Name": "FAKE_WRITE"}, (400, -32020)),
    ({"Mcp-Name": coded("fake_list")}, (400, -32020)),
    ({"Mcp-Name": coded("fake_write").replace("base64", "BASE64")}, (400, -32020)),
    ({"Mcp-Name": coded("fake_write") + "="}, (400, -32020)),
    ({"Mcp-Name": "=?base64?ZmFrZV93cml0ZR==?="}, (400, -32020)),
    ({"Mcp-Name": "=?base64?****?="}, (400, -32020)),
    ({"Mcp-Name": "=?base64?/w==?="}, (400, -32020)),
    ({"Mcp-Param-Anything": "else"}, OK),
    ({"Mcp-Session-Id": "s-1", "Last-Event-ID": "5"}, OK),
]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(("sent", "expected"), STANDARD, ids=lambda each: str(each)[:50])
async def test_headers_say_what_the_body_says(
    agent: Agent,
    tenant: Tenant,
    jwt: str,
    vendor: FakeVendor,
    path: str,
    sent: dict[str, str | None],
    expected: tuple[int, int | None],
) -> None:
    answer = await call(agent, bearer_of(tenant, jwt, path), "fake_write", path=path, **sent)
    assert (answer.status_code, answer.json().get("error", {}).get("code")) == expected, answer.text
    assert vendor.seen["tools/call"] == (expected == OK)


@pytest.mark.parametrize("name", ["MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"])
async def test_a_header_sent_twice_is_refused(agent: Agent, tenant: Tenant, vendor: FakeVendor, name: str) -> None:
    params = {"name": "fake_write", "arguments": {}, "_meta": meta()}
    once = headers(tenant.agent_key, said("tools/call", params))
    body = {"jsonrpc": "2.0", "id": "r-1", "method": "tools/call", "params": params}
    answer = await agent.http.post("/v1/mcp", json=body, headers=[*once.items(), (name.lower(), once[name])])
    assert error(answer) == (400, -32020)
    assert vendor.seen["tools/call"] == 0


REGIONS = [
    ({"region": "eu"}, {"Mcp-Param-Region": "eu"}, OK),
    ({"region": "eu"}, {"mcp-param-REGION": "eu"}, OK),
    ({"region": "Zürich"}, {"Mcp-Param-Region": coded("Zürich")}, OK),
    ({"region": " eu "}, {"Mcp-Param-Region": coded(" eu ")}, OK),
    ({"region": coded("eu")}, {"Mcp-Param-Region": coded(coded("eu"))}, OK),
    ({"region": None}, {}, OK),
    ({"free": "eu"}, {}, OK),
    ({"limit": 42}, {"Mcp-Param-Limit": "42"}, OK),
    ({"limit": 42}, {"Mcp-Param-Limit": "42.0"}, OK),
    ({"limit": -7}, {"Mcp-Param-Limit": "-7"}, OK),
    ({"limit": 42.0}, {"Mcp-Param-Limit": "42"}, OK),
    ({"deep": {"dry": True}}, {"Mcp-Param-Dry": "true"}, OK),
    ({"region": "eu"}, {}, (400, -32020)),
    ({"region": "eu"}, {"Mcp-Param-Region": "us"}, (400, -32020)),
    ({"region": "eu"}, {"Mcp-Param-Region": "EU"}, (400, -32020)),
    ({"region": "eu"}, {"Mcp-Param-Region": "=?base64?eu?="}, (400, -32020)),
    ({"region": coded("eu")}, {"Mcp-Param-Region": coded("eu")}, (400, -32020)),
    ({"region": None}, {"Mcp-Param-Region": "eu"}, (400, -32020)),
    ({}, {"Mcp-Param-Region": "eu"}, (400, -32020)),
    ({"region": ["eu"]}, {"Mcp-Param-Region": "eu"}, (400, -32020)),
    ({"limit": 42}, {"Mcp-Param-Limit": "42.5"}, (400, -32020)),
    ({"limit": 42}, {"Mcp-Param-Limit": "4e1"}, (400, -32020)),
    ({"limit": True}, {"Mcp-Param-Limit": "1"}, (400, -32020)),
    ({"deep": {"dry": True}}, {"Mcp-Param-Dry": "True"}, (400, -32020)),
    ({"deep": {"dry": False}}, {}, (400, -32020)),
]


@pytest.mark.parametrize(("arguments", "sent", "expected"), REGIONS, ids=lambda each: str(each)[:50])
async def test_headers_of_arguments_say_what_the_arguments_say(
    agent: Agent,
    tenant: Tenant,
    vendor: FakeVendor,
    arguments: dict[str, Any],
    sent: dict[str, str],
    expected: tuple[int, int | None],
) -> None:
    vendor.tools.append(REGION)
    answer = await call(agent, tenant.agent_key, "fake_query", arguments, **sent)
    assert (answer.status_code, answer.json().get("error", {}).get("code")) == expected, answer.text
    assert vendor.seen["tools/call"] == (expected == OK)
    (row,) = await rows()
    assert (row.status, row.error_code) == (("success", "") if expected == OK else ("denied", "bad_arguments"))
    earlier = await agent.rpc(tenant.agent_key, "tools/call", {"name": "fake_query", "arguments": arguments}, **sent)
    assert "result" in earlier.json(), "an earlier version has no such headers"


@pytest.mark.parametrize(("members", "thread"), [(10, "MainThread"), (5_000, "long-work_0")])
async def test_a_large_schema_is_read_beside_the_event_loop(
    agent: Agent, tenant: Tenant, vendor: FakeVendor, monkeypatch: pytest.MonkeyPatch, members: int, thread: str
) -> None:
    many = {f"member_{n}": {"type": "string"} for n in range(members)}
    schema = {**REGION["inputSchema"], "properties": {**REGION["inputSchema"]["properties"], **many}}
    vendor.tools = [{**REGION, "inputSchema": schema}]
    annotated, seen = param_headers.annotated, []

    def noted(schema: object) -> tuple[param_headers.ParamHeader, ...] | None:
        seen.append(threading.current_thread().name)
        return annotated(schema)

    monkeypatch.setattr(param_headers, "annotated", noted)
    answer = await call(agent, tenant.agent_key, "fake_query", {"region": "eu"})
    assert error(answer) == (400, -32020)
    assert seen == [thread]
    assert vendor.seen["tools/call"] == 0


async def test_a_header_of_an_argument_sent_twice_is_refused(agent: Agent, tenant: Tenant, vendor: FakeVendor) -> None:
    vendor.tools.append(REGION)
    params = {"name": "fake_query", "arguments": {"region": "a,a"}, "_meta": meta()}
    twice = [("Mcp-Param-Region", "a"), ("mcp-param-region", "a")]
    body = {"jsonrpc": "2.0", "id": "r-1", "method": "tools/call", "params": params}
    sent = [*headers(tenant.agent_key, said("tools/call", params)).items(), *twice]
    answer = await agent.http.post("/v1/mcp", json=body, headers=sent)
    assert error(answer) == (400, -32020)
    assert vendor.seen["tools/call"] == 0


async def test_a_browser_may_send_headers_of_arguments(agent: Agent) -> None:
    asked = {
        "Origin": "http://localhost:6274",
        "Access-Control-Request-Headers": "mcp-param-region, Mcp-Param-A b, x-other, mcp-param-Limit",
    }
    answer = await agent.http.options("/v1/mcp", headers=asked)
    allowed = answer.headers["Access-Control-Allow-Headers"]
    assert allowed.endswith("Last-Event-ID, mcp-param-region, mcp-param-Limit")
    asked["Access-Control-Request-Headers"] = "," * 98 + "mcp-param-region,mcp-param-limit,mcp-param-late"
    answer = await agent.http.options("/v1/mcp", headers=asked)
    # The rest of a long list is not read.
    assert answer.headers["Access-Control-Allow-Headers"].endswith("Last-Event-ID, mcp-param-region, mcp-param-limit")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("body", "code", "has_id"),
    [
        (b"{", -32700, False),
        (b"\xff", -32700, False),
        (b"17", -32600, False),
        (b"[]", -32600, False),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600, False),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, False),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600, False),
        (b'{"jsonrpc":"1.0","id":"r-1","method":"ping"}', -32600, True),
        (b'{"jsonrpc":"2.0","id":"r-1","method":5}', -32600, True),
        (b'{"jsonrpc":"2.0","id":"r-1","method":"ping","params":[]}', -32602, True),
        (b'{"jsonrpc":"2.0","id":"r-1","method":"ping","params":{"_meta":[]}}', -32602, True),
        (b'{"jsonrpc":"2.0","id":"r-1","result":{}}', -32600, False),
        (b'{"jsonrpc":"2.0","id":"r-1","error":{"code":1,"message":"x"}}', -32600, False),
    ],
)
async def test_what_is_no_request_is_refused_without_an_id_of_null(
    agent: Agent, tenant: Tenant, jwt: str, path: str, body: bytes, code: int, has_id: bool
) -> None:
    sent = {"Content-Type": "application/json", "MCP-Protocol-Version": VERSION}
    answer = await agent.http.post(path, content=body, headers=headers(bearer_of(tenant, jwt, path), sent))
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)
    assert answer.json().get("id", ...) == ("r-1" if has_id else ...)


async def test_a_batch_with_a_modern_entry_is_refused_whole(agent: Agent, tenant: Tenant, vendor: FakeVendor) -> None:
    old = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "fake_write"}}
    new = {**old, "params": {"name": "fake_write", "_meta": meta()}}
    for batch, header in [([old, new], {}), ([new], {"MCP-Protocol-Version": "2025-03-26"}), ([17, new], {})]:
        answer = await agent.http.post("/v1/mcp", json=batch, headers=headers(tenant.agent_key, header))
        assert (answer.status_code, answer.json()["error"]["code"], "id" in answer.json()) == (400, -32600, False)
    assert vendor.seen["tools/call"] == 0
    answer = await agent.http.post("/v1/mcp", json=[old], headers=headers(tenant.agent_key, {}))
    assert answer.json()[0]["id"] == 1


@pytest.mark.parametrize("header", [VERSION, None, EARLIER])
async def test_a_notification_needs_no_header_and_gets_no_answer(
    agent: Agent, tenant: Tenant, vendor: FakeVendor, header: str | None
) -> None:
    note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1, "_meta": meta()}}
    sent = {} if header is None else {"MCP-Protocol-Version": header}
    answer = await agent.http.post("/v1/mcp", json=note, headers=headers(tenant.agent_key, sent))
    assert (answer.status_code, answer.content) == (202, b"")
    assert sum(vendor.seen.values()) == 0
