"""MCP 2026-07-28 at both endpoints: what each method answers, and what it hears on the way."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from mcp_types import _v2026_07_28 as schema

from audit.models import RequestAuditEntry
from gateway.coordination.rules import Rule
from proxy.protocol.sse import SSEParser
from tests.api.proxy.conftest import Agent, access_token, headers
from tests.api.proxy.modern import PATHS, RESERVED, VERSION, ask, bearer_of, call, error, meta, said
from tests.api.proxy.streams import Stream
from tests.api.proxy.traces import rows, until
from tests.factories.tenant import Tenant, load_vendor, restrict_tools
from tests.factories.threads import in_thread
from tests.fakes.vendor import FakeVendor

HANDSHAKE = {"server/discover", "initialize", "notifications/initialized"}


@pytest.mark.parametrize("path", PATHS)
async def test_a_server_is_discovered(agent: Agent, tenant: Tenant, jwt: str, vendor: FakeVendor, path: str) -> None:
    answer = await ask(agent, bearer_of(tenant, jwt, path), "server/discover", path=path)
    assert answer.status_code == 200
    assert "Mcp-Session-Id" not in answer.headers
    found = answer.json()["result"]
    schema.DiscoverResult.model_validate(found)
    assert found["supportedVersions"] == [VERSION]
    assert found["capabilities"] == {"tools": {"listChanged": True}}
    assert (found["resultType"], found["ttlMs"], found["cacheScope"]) == ("complete", 0, "private")
    assert "Fake" in found["instructions"]
    assert found["_meta"][RESERVED + "serverInfo"]["name"] == "mcp-gateway"
    assert found["_meta"][RESERVED + "serverInfo"]["icons"]
    assert vendor.seen.keys() == HANDSHAKE  # once: what the vendor declares was not known
    await ask(agent, bearer_of(tenant, jwt, path), "server/discover", path=path)
    assert vendor.seen["initialize"] == 1


async def test_who_asks_comes_before_what_is_asked(agent: Agent, tenant: Tenant) -> None:
    for method in ("server/discover", "tools/list", "subscriptions/listen", "nothing/at/all"):
        answer = await ask(agent, None, method)
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")


async def test_each_organization_discovers_its_own(agent: Agent, tenant: Tenant, other_tenant: Tenant) -> None:
    answer = await ask(agent, other_tenant.agent_key, "server/discover")
    assert answer.json()["result"]["instructions"].startswith("There are no tools yet.")
    listed = await ask(agent, other_tenant.agent_key, "tools/list")
    assert listed.json()["result"]["tools"] == []
    refused = await call(agent, other_tenant.agent_key, "fake_list")
    assert refused.status_code == 200
    result = refused.json()["result"]
    assert (result["resultType"], result["isError"]) == ("complete", True)
    assert set(result["_meta"]) == {"gateway/help", RESERVED + "serverInfo"}


@pytest.mark.parametrize("path", PATHS)
async def test_tools_are_listed_and_never_kept(agent: Agent, tenant: Tenant, jwt: str, path: str) -> None:
    bearer = bearer_of(tenant, jwt, path)
    answer = await ask(agent, bearer, "tools/list", path=path)
    found = answer.json()["result"]
    schema.ListToolsResult.model_validate(found)
    assert [tool["name"] for tool in found["tools"]] == ["fake_fail", "fake_list", "fake_write"]
    assert (found["resultType"], found["ttlMs"], found["cacheScope"]) == ("complete", 0, "private")
    earlier = await agent.rpc(bearer, "tools/list", path=path)
    assert found["tools"] == earlier.json()["result"]["tools"]
    assert set(earlier.json()["result"]) == {"tools"}
    paged = await ask(agent, bearer, "tools/list", {"cursor": "2"}, path=path)
    assert error(paged) == (200, -32602)


async def test_a_withdrawn_tool_is_gone_at_once(agent: Agent, tenant: Tenant, vendor: FakeVendor) -> None:
    before = await ask(agent, tenant.agent_key, "tools/list")
    assert "fake_write" in before.text
    await in_thread(lambda: restrict_tools(tenant.organization, "fake_list"))
    after = await ask(agent, tenant.agent_key, "tools/list")
    assert [tool["name"] for tool in after.json()["result"]["tools"]] == ["fake_list"]
    refused = await call(agent, tenant.agent_key, "fake_write")
    assert refused.json()["result"]["isError"] is True
    assert vendor.seen["tools/call"] == 0


async def test_a_vendor_that_is_down_is_named_beside_the_server(
    agent: Agent, tenant: Tenant, vendor: FakeVendor
) -> None:
    vendor.api_key = "another-key"
    found = (await ask(agent, tenant.agent_key, "tools/list")).json()["result"]
    assert found["tools"] == []
    assert found["_meta"]["gateway/unavailable"] == {"fake": "vendor_rejected_credentials"}
    assert found["_meta"][RESERVED + "serverInfo"]["name"] == "mcp-gateway"


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("request_id", [0, -1, "", "ü", 10**30], ids=str)
async def test_a_tool_is_called(
    agent: Agent, tenant: Tenant, jwt: str, vendor: FakeVendor, path: str, request_id: Any
) -> None:
    bearer = bearer_of(tenant, jwt, path)
    answer = await call(agent, bearer, "fake_list", {"site": "hq"}, path=path, id=request_id)
    assert (answer.status_code, answer.json()["id"]) == (200, request_id)
    found = answer.json()["result"]
    schema.CallToolResult.model_validate(found)
    assert found["resultType"] == "complete"
    assert found["structuredContent"] == {"site": "hq"}
    assert "ttlMs" not in found
    assert vendor.bodies[-1]["params"] == {"name": "fake_list", "arguments": {"site": "hq"}}
    (row,) = await rows()
    assert (row.status, row.tool, row.source) == ("success", "fake_list", "mcp")


async def test_what_the_caller_says_of_itself_stays_here(agent: Agent, tenant: Tenant, vendor: FakeVendor) -> None:
    own = {**meta(logLevel="debug"), "com.example/cost": 3, "traceparent": "00-1"}
    await call(agent, tenant.agent_key, "fake_list", meta=own)
    assert vendor.bodies[-1]["params"]["_meta"] == {"com.example/cost": 3, "traceparent": "00-1"}


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ({}, {"content": []}),
        ({"structuredContent": 7}, {"content": [], "structuredContent": 7}),
        ({"content": None}, {"content": []}),
        ({"content": [], "resultType": "input_required"}, {"content": []}),
        ({"structuredContent": {"content": 1}}, {"content": [], "structuredContent": {"content": 1}}),
        (
            {"content": [], "_meta": {RESERVED + "serverInfo": {"name": "vendor"}, "com.example/x": 1}},
            {"content": [], "_meta": {"com.example/x": 1}},
        ),
        ({"content": [], "_meta": 5}, {"content": []}),
    ],
    ids=lambda each: json.dumps(each)[:40],
)
async def test_a_vendors_result_gets_what_it_lacks(
    agent: Agent, tenant: Tenant, vendor: FakeVendor, result: dict[str, Any], expected: dict[str, Any]
) -> None:
    vendor._call = lambda params: {"result": result}  # type: ignore[method-assign]
    found = (await call(agent, tenant.agent_key, "fake_list")).json()["result"]
    own = found["_meta"].pop(RESERVED + "serverInfo")
    assert own["name"] == "mcp-gateway"
    assert found.pop("resultType") == "complete"
    assert {**found, "_meta": found["_meta"]} == {"_meta": {}, **expected}


async def test_a_failed_tool_and_an_unknown_one(agent: Agent, tenant: Tenant, vendor: FakeVendor) -> None:
    failed = await call(agent, tenant.agent_key, "fake_fail")
    assert (failed.status_code, failed.json()["result"]["isError"]) == (200, True)
    unknown = await call(agent, tenant.agent_key, "fake_nothing")
    assert error(unknown) == (200, -32602)
    assert vendor.seen["tools/call"] == 1


@pytest.mark.parametrize(
    "params", [{}, {"name": ""}, {"name": 5}, {"name": "fake_list", "arguments": [1]}], ids=json.dumps
)
async def test_a_call_that_is_malformed_is_recorded(
    agent: Agent, tenant: Tenant, vendor: FakeVendor, params: dict[str, Any]
) -> None:
    answer = await ask(agent, tenant.agent_key, "tools/call", params)
    assert error(answer) == (200, -32602)
    assert vendor.seen["tools/call"] == 0
    (row,) = await rows()
    assert (row.status, row.error_code) == ("denied", "bad_arguments")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "method",
    [
        *("initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "resources/list"),
        *("prompts/list", "prompts/get", "resources/read", "completion/complete", "tasks/get", "nothing/at/all", ""),
    ],
)
async def test_a_method_that_is_not_there_is_404(
    agent: Agent, tenant: Tenant, jwt: str, vendor: FakeVendor, path: str, method: str
) -> None:
    answer = await ask(agent, bearer_of(tenant, jwt, path), method, path=path)
    assert error(answer) == (404, -32601)
    assert vendor.seen.keys() <= HANDSHAKE


async def test_a_handshake_of_an_earlier_version_is_one_whatever_its_header_says(agent: Agent, tenant: Tenant) -> None:
    for own in ({}, {"_meta": {"traceparent": "x"}}, {"_meta": meta(protocolVersion="2025-11-25")}):
        params = {"protocolVersion": "2025-11-25", **own}
        sent = {"MCP-Protocol-Version": VERSION, "Mcp-Method": "initialize"}
        answer = await agent.rpc(tenant.agent_key, "initialize", params, **sent)
        assert (answer.status_code, answer.json()["result"]["protocolVersion"]) == (200, "2025-11-25")


async def test_get_and_delete_are_for_neither(agent: Agent, tenant: Tenant) -> None:
    for method in ("GET", "DELETE"):
        sent = headers(tenant.agent_key, {"MCP-Protocol-Version": VERSION})
        answer = await agent.http.request(method, "/v1/mcp", headers=sent)
        assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")


def messages_of(answer: httpx.Response) -> list[dict[str, Any]]:
    """The messages of an event stream."""
    assert answer.headers["Content-Type"] == "text/event-stream"
    assert answer.headers["X-Accel-Buffering"] == "no"
    return [json.loads(event.data) for event in SSEParser().feed(answer.content)]


@pytest.mark.parametrize("path", PATHS)
async def test_a_subscription_to_what_is_not_there_ends_and_says_so(
    agent: Agent, tenant: Tenant, jwt: str, path: str
) -> None:
    """The vendor has no prompts, and no stream tells of changed resources."""
    wanted = {"notifications": {"promptsListChanged": True, "resourceSubscriptions": ["a:b"], "other": 1}}
    answer = await ask(agent, bearer_of(tenant, jwt, path), "subscriptions/listen", wanted, path=path, id=7)
    begun, ended = messages_of(answer)
    own = {RESERVED + "subscriptionId": 7}
    assert begun == {
        "jsonrpc": "2.0",
        "method": "notifications/subscriptions/acknowledged",
        "params": {"_meta": own, "notifications": {}},
    }
    assert ended["id"] == 7
    schema.SubscriptionsListenResult.model_validate(ended["result"])
    assert ended["result"]["_meta"][RESERVED + "subscriptionId"] == 7


async def test_a_malformed_subscription_is_refused(agent: Agent, tenant: Tenant) -> None:
    for wanted in (None, [], {"toolsListChanged": 1}, {"resourceSubscriptions": "a:b"}):
        answer = await ask(agent, tenant.agent_key, "subscriptions/listen", {"notifications": wanted})
        assert error(answer) == (200, -32602)
    answer = await ask(
        agent, tenant.agent_key, "subscriptions/listen", {"notifications": {}}, Accept="application/json"
    )
    assert answer.status_code == 406


def log_of(level: str) -> dict[str, Any]:
    """A vendor's log message."""
    return {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": level, "data": level}}


@pytest.mark.parametrize(
    ("own", "heard"),
    [
        ({}, []),
        ({"progressToken": "p"}, ["progress"]),
        ({"progressToken": "p", RESERVED + "logLevel": "warning"}, ["error", "progress"]),
        ({"progressToken": "p", RESERVED + "logLevel": "debug"}, ["info", "error", "progress"]),
    ],
)
async def test_a_caller_hears_what_it_asked_for(
    agent: Agent, tenant: Tenant, vendor: FakeVendor, own: dict[str, Any], heard: list[str]
) -> None:
    vendor.reply, vendor.steps, vendor.strays = "sse", 1, [log_of("info"), log_of("error")]
    answer = await call(agent, tenant.agent_key, "fake_list", {"site": "hq"}, meta={**meta(), **own})
    if not heard:
        assert answer.json()["result"]["structuredContent"] == {"site": "hq"}
        return
    *notes, last = messages_of(answer)
    assert [note["params"].get("level", "progress") for note in notes] == heard
    assert last["result"]["resultType"] == "complete"
    assert last["result"]["structuredContent"] == {"site": "hq"}


async def test_logs_alone_ask_the_vendor_for_no_progress(agent: Agent, tenant: Tenant, vendor: FakeVendor) -> None:
    vendor.reply, vendor.steps = "sse", 1
    answer = await call(agent, tenant.agent_key, "fake_list", meta=meta(logLevel="debug"))
    assert "result" in answer.json()
    assert "_meta" not in vendor.bodies[-1]["params"]


async def test_leaving_cancels_the_call(agent: Agent, tenant: Tenant, vendor: FakeVendor) -> None:
    vendor.reply, vendor.steps, vendor.step_s = "sse", 1_000, 0.01
    own = {"name": "fake_write", "arguments": {}, "_meta": {**meta(), "progressToken": 1}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": own}
    stream = Stream("/v1/mcp", tenant.agent_key, body, said("tools/call", own))
    await stream.begin()
    assert (await stream.read() or {})["method"] == "notifications/progress"
    await stream.leave()
    await until(lambda: vendor.seen["notifications/cancelled"] == 1)
    (row,) = await rows()
    assert (row.status, row.error_code) == ("error", "client_closed")


@pytest.mark.parametrize(
    ("code", "data", "own", "expected"),
    [
        (-32001, {"why": "test"}, {}, (200, -32001)),
        (-32602, None, {}, (200, -32602)),
        (-32601, None, {}, (200, -32601)),
        (-32002, {"uri": "a:b"}, {}, (200, -32602)),
        (-32042, {"elicitations": []}, {}, (200, -32603)),
        (-32020, None, {}, (200, -32603)),
        (-32022, {"supported": ["x"]}, {}, (200, -32603)),
        (-32021, {"requiredCapabilities": {"sampling": {}}}, {}, (400, -32021)),
        (-32021, {"requiredCapabilities": {"sampling": {}}}, {"sampling": {}}, (200, -32603)),
        (-32021, {"requiredCapabilities": ["sampling"]}, {}, (200, -32603)),
    ],
)
async def test_an_error_of_the_vendor_means_the_callers_hop(
    agent: Agent, tenant: Tenant, vendor: FakeVendor, code: int, data: Any, own: Any, expected: tuple[int, int]
) -> None:
    refusal = {"code": code, "message": "no", **({} if data is None else {"data": data})}
    vendor._call = lambda params: {"error": refusal}  # type: ignore[method-assign]
    answer = await call(agent, tenant.agent_key, "fake_list", meta=meta(clientCapabilities=own))
    assert error(answer) == expected
    if expected[1] == code:
        assert answer.json()["error"] == refusal
    (row,) = await rows()
    assert (row.status, row.error_code) == ("error", "vendor_error")
    earlier = await agent.call(tenant.agent_key, "fake_list")
    if code != -32042:  # such a client opens no pages
        assert earlier.json()["error"] == refusal


async def test_each_request_counts_in_its_limit(
    agent: Agent, tenant: Tenant, vendor: FakeVendor, settings: Any
) -> None:
    settings.TOOL_CALLS = Rule("tools", limit=1, window_s=3600)
    assert (await call(agent, tenant.agent_key, "fake_list")).status_code == 200
    refused = await call(agent, tenant.agent_key, "fake_list")
    assert (refused.status_code, refused.json()["error"]) == (429, "rate_limited")
    assert int(refused.headers["Retry-After"]) > 0
    settings.BACKSTOP = Rule("backstop", limit=2, window_s=3600)
    statuses = [(await ask(agent, tenant.agent_key, "nothing/at/all")).status_code for _ in range(3)]
    assert statuses == [404, 404, 429]
    assert vendor.seen["tools/call"] == 1


async def test_a_token_of_another_vendor_opens_nothing(agent: Agent, tenant: Tenant, jwt: str) -> None:
    await in_thread(lambda: load_vendor("http://127.0.0.1:9/mcp", slug="globex"))
    narrow = await in_thread(lambda: access_token(tenant, scope="mcp:globex"))
    for method in ("server/discover", "tools/list"):
        answer = await ask(agent, narrow, method, path="/v1/fake/mcp")
        assert (answer.status_code, answer.json()["error"]) == (403, "insufficient_scope")
    refused = await call(agent, narrow, "fake_list")
    assert (refused.status_code, refused.json()["error"]) == (403, "insufficient_scope")
    assert await in_thread(RequestAuditEntry.objects.filter(status="success").count) == 0
