"""POST /v1/mcp tools/call: the whole walk, and every way it is refused."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from oauth_ext.services.agent_keys import mint_agent_key, revoke_agent_key
from proxy.calls import open_destination
from tests.api.proxy.conftest import Agent, headers
from tests.api.proxy.traces import rows
from tests.factories.tenant import Tenant, restrict_tools
from tests.factories.threads import in_thread
from tests.fakes.vendor import FakeVendor


async def test_a_call_walks_the_whole_product(agent: Agent, tenant: Tenant, vendor: FakeVendor) -> None:
    answer = await agent.call(tenant.agent_key, "fake_list", site="hq")
    assert answer.status_code == 200
    assert answer.json() == {
        "jsonrpc": "2.0",
        "id": 1,
        "result": {"content": [{"type": "text", "text": '{"site": "hq"}'}], "structuredContent": {"site": "hq"}},
    }
    assert vendor.headers["X-Api-Key"] == "right-key"
    assert "Authorization" not in vendor.headers
    (row,) = await rows()
    assert (row.org_id, row.user_id, row.user_label) == (tenant.organization.id, tenant.client.subject, "build bot")
    assert (row.vendor, row.tool, row.source, row.status, row.credential_scope) == (
        "fake",
        "fake_list",
        "mcp",
        "success",
        "organization",
    )
    assert row.request_id == answer.headers["X-Request-Id"]


async def test_a_jwt_does_the_same(agent: Agent, jwt: str, vendor: FakeVendor) -> None:
    answer = await agent.call(jwt, "fake_list", site="hq")
    assert answer.json()["result"]["structuredContent"] == {"site": "hq"}


async def test_a_warm_call_is_one_vendor_request(agent: Agent, tenant: Tenant, vendor: FakeVendor) -> None:
    await agent.call(tenant.agent_key, "fake_list")
    vendor.seen.clear()
    for _ in range(5):
        await agent.call(tenant.agent_key, "fake_list")
    assert dict(vendor.seen) == {"tools/call": 5}


@pytest.mark.parametrize("reply", ["json", "sse"])
async def test_both_kinds_of_reply(agent: Agent, tenant: Tenant, vendor: FakeVendor, reply: str) -> None:
    vendor.reply = reply
    answer = await agent.call(tenant.agent_key, "fake_list", site="hq")
    assert answer.json()["result"]["structuredContent"] == {"site": "hq"}


async def test_a_vendor_that_asks_is_answered_no_and_the_call_goes_on(
    agent: Agent, tenant: Tenant, vendor: FakeVendor
) -> None:
    vendor.reply = "asks"
    answer = await agent.call(tenant.agent_key, "fake_list", site="hq")
    assert answer.json()["result"]["structuredContent"] == {"site": "hq"}
    assert [(one["id"], one["error"]["code"]) for one in vendor.refusals] == [("q1", -32601)]


async def test_a_vendor_that_asks_without_end_does_not_make_us_answer_without_end(
    agent: Agent, tenant: Tenant, vendor: FakeVendor
) -> None:
    vendor.reply = "asks-much"
    answer = await agent.call(tenant.agent_key, "fake_list", site="hq")
    assert answer.json()["result"]["structuredContent"] == {"site": "hq"}
    assert 0 < len(vendor.refusals) < 1_000


async def test_a_tool_list_that_is_too_large_as_a_whole_is_refused(
    agent: Agent, tenant: Tenant, vendor: FakeVendor
) -> None:
    vendor.page_size = 1
    vendor.tools = [{**vendor.tools[0], "name": f"fake_{n}", "description": "x" * 1024 * 1024} for n in range(6)]
    answer = await agent.call(tenant.agent_key, "fake_0")
    assert answer.json()["error"]["data"]["reason"] == "bad_vendor_response"
    assert vendor.seen["tools/list"] == 4


@pytest.mark.parametrize("status", [404, 400])
async def test_a_lost_session_is_opened_again_once(
    agent: Agent, tenant: Tenant, vendor: FakeVendor, status: int
) -> None:
    vendor.lost_session_status = status
    await agent.call(tenant.agent_key, "fake_list")
    vendor.forget_sessions()
    vendor.seen.clear()
    answer = await agent.call(tenant.agent_key, "fake_list", site="hq")
    assert answer.json()["result"]["structuredContent"] == {"site": "hq"}
    assert vendor.seen == {"tools/call": 2, "initialize": 1, "notifications/initialized": 1}


async def test_a_writing_tool_leaves_its_intent_before_it_is_sent(
    agent: Agent, tenant: Tenant, vendor: FakeVendor
) -> None:
    seen: list[str] = []
    handle = vendor._call

    def watch(params: dict[str, object]) -> dict[str, object]:
        import sqlite3
        from pathlib import Path

        from django.db import connection

        if connection.vendor == "sqlite":
            path = Path(str(connection.settings_dict["NAME"]))
            with sqlite3.connect(path) as database:
                seen.extend(row[0] for row in database.execute("SELECT status FROM audit_requestauditentry"))
        return handle(params)

    vendor._call = watch  # type: ignore[method-assign]
    answer = await agent.call(tenant.agent_key, "fake_write")
    assert answer.status_code == 200
    (row,) = await rows()
    assert row.status == "success"
    assert seen in ([], ["unknown"])  # on PostgreSQL the row is looked at in the fault tests


async def test_an_error_of_the_tool_is_passed_on_as_it_is(agent: Agent, tenant: Tenant) -> None:
    answer = await agent.call(tenant.agent_key, "fake_fail")
    assert answer.json()["result"] == {"content": [{"type": "text", "text": "the thing broke"}], "isError": True}
    (row,) = await rows()
    assert (row.status, row.error_code) == ("error", "tool_error")


async def test_an_unknown_tool_is_named(agent: Agent, tenant: Tenant, vendor: FakeVendor) -> None:
    answer = await agent.call(tenant.agent_key, "fake_nothing")
    assert answer.status_code == 200
    assert answer.json()["error"] == {"code": -32602, "message": "Unknown tool: fake_nothing"}
    nowhere = await agent.call(tenant.agent_key, "elsewhere_tool")
    assert nowhere.json()["error"]["code"] == -32602
    assert vendor.seen["tools/call"] == 0
    assert [(row.status, row.error_code, row.vendor) for row in await rows()] == [
        ("denied", "unknown_tool", "fake"),
        ("denied", "unknown_tool", ""),
    ]


async def test_a_tool_outside_the_allowlist_is_refused_in_words(
    agent: Agent, tenant: Tenant, vendor: FakeVendor
) -> None:
    await in_thread(lambda: restrict_tools(tenant.organization, "fake_list"))
    refused = await agent.call(tenant.agent_key, "fake_write")
    assert refused.json()["result"]["isError"] is True
    assert "allowed to call" in refused.json()["result"]["content"][0]["text"]
    assert vendor.seen["tools/call"] == 0
    listed = await agent.rpc(tenant.agent_key, "tools/list")
    assert [tool["name"] for tool in listed.json()["result"]["tools"]] == ["fake_list"]
    (row,) = await rows()
    assert (row.status, row.error_code, row.vendor, row.tool) == ("denied", "tool_not_allowed", "fake", "fake_write")


async def test_another_organization_reaches_nothing(
    agent: Agent, tenant: Tenant, other_tenant: Tenant, vendor: FakeVendor
) -> None:
    refused = await agent.call(other_tenant.agent_key, "fake_list")
    assert refused.json()["result"]["isError"] is True
    assert "not connected" in refused.json()["result"]["content"][0]["text"]
    assert (await agent.rpc(other_tenant.agent_key, "tools/list")).json()["result"]["tools"] == []
    assert sum(vendor.seen.values()) == 0
    (row,) = await rows()
    assert row.org_id == other_tenant.organization.id
    assert (row.status, row.error_code) == ("denied", "no_credentials")


async def test_a_rotated_or_revoked_key_is_refused_at_once(agent: Agent, tenant: Tenant) -> None:
    old = tenant.agent_key
    assert (await agent.call(old, "fake_list")).status_code == 200
    fresh = (await in_thread(lambda: mint_agent_key(actor=tenant.owner, client=tenant.client))).agent_key
    assert (await agent.call(old, "fake_list")).status_code == 401
    assert (await agent.call(fresh, "fake_list")).status_code == 200
    await in_thread(lambda: revoke_agent_key(actor=tenant.owner, client=tenant.client))
    refused = await agent.call(fresh, "fake_list")
    assert refused.status_code == 401
    assert 'error="invalid_token"' in refused.headers["WWW-Authenticate"]


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ({"status": 500}, "vendor_unavailable"),
        ({"status": 401}, "vendor_rejected_credentials"),
        ({"status": 429, "retry_after": "7"}, "vendor_unavailable"),
        ({"reply": "html"}, "bad_vendor_response"),
        ({"reply": "wrong-id"}, "bad_vendor_response"),
        ({"reply": "silence"}, "bad_vendor_response"),
        ({"reply": "huge"}, "bad_vendor_response"),
    ],
)
async def test_a_broken_vendor_is_an_error_with_its_reason(
    agent: Agent, tenant: Tenant, vendor: FakeVendor, setting: dict[str, object], reason: str
) -> None:
    for name, value in setting.items():
        setattr(vendor, name, value)
    answer = await agent.call(tenant.agent_key, "fake_list")
    assert answer.status_code == 200
    error = answer.json()["error"]
    assert (error["code"], error["data"]["vendor"], error["data"]["reason"]) == (-32603, "fake", reason)
    assert "WWW-Authenticate" not in answer.headers
    assert "secret internals" not in answer.text
    assert "127.0.0.1" not in answer.text
    assert error["data"].get("retryAfter") == (7 if setting.get("retry_after") else None)
    (row,) = await rows()
    assert (row.status, row.error_code) == ("error", reason)


async def test_an_error_of_the_vendor_is_relayed(agent: Agent, tenant: Tenant, vendor: FakeVendor) -> None:
    vendor.tools.append({"name": "fake_refuse", "inputSchema": {"type": "object"}})
    answer = await agent.call(tenant.agent_key, "fake_refuse")
    assert answer.json()["error"] == {"code": -32001, "message": "refused by the vendor", "data": {"why": "test"}}


async def test_wrong_stored_credentials_are_not_a_401_of_ours(agent: Agent, tenant: Tenant, vendor: FakeVendor) -> None:
    vendor.api_key = "another-key"
    answer = await agent.call(tenant.agent_key, "fake_list")
    assert answer.status_code == 200
    assert answer.json()["error"]["data"]["reason"] == "vendor_rejected_credentials"


async def test_a_vendors_cookie_reaches_nobody(agent: Agent, tenant: Tenant, vendor: FakeVendor) -> None:
    await agent.call(tenant.agent_key, "fake_list")
    await agent.call(tenant.agent_key, "fake_list")
    assert "Cookie" not in vendor.headers


async def test_the_callers_progress_token_does_not_reach_the_shared_session(
    agent: Agent, tenant: Tenant, vendor: FakeVendor
) -> None:
    params = {"name": "fake_list", "arguments": {}, "_meta": {"progressToken": "mine", "traceparent": "00-abc"}}
    await agent.rpc(tenant.agent_key, "tools/call", params)
    await agent.rpc(tenant.agent_key, "tools/call", params)
    sent = [body["params"]["_meta"] for body in vendor.bodies if body.get("method") == "tools/call"]
    assert [meta["traceparent"] for meta in sent] == ["00-abc", "00-abc"]
    first, second = (meta["progressToken"] for meta in sent)
    assert len({"mine", first, second}) == 3


@pytest.mark.parametrize(
    "params",
    [{}, {"name": 7}, {"name": ""}, {"name": "fake_list", "arguments": []}, {"name": "fake_list", "arguments": 3}],
)
async def test_bad_params_are_a_call_that_goes_nowhere(
    agent: Agent, tenant: Tenant, vendor: FakeVendor, params: dict[str, object]
) -> None:
    answer = await agent.rpc(tenant.agent_key, "tools/call", params)
    assert answer.status_code == 200
    assert answer.json()["error"]["code"] == -32602
    assert answer.headers["RateLimit"].startswith('"tools"'), "it counts as a call"
    tool = params.get("name") or ""
    assert [(row.status, row.error_code, row.tool) for row in await rows()] == [
        ("denied", "bad_arguments", tool if isinstance(tool, str) else "")
    ]
    assert vendor.seen["tools/call"] == 0


async def test_each_call_of_a_batch_has_a_row_of_its_own_times(
    agent: Agent, tenant: Tenant, vendor: FakeVendor
) -> None:
    await agent.call(tenant.agent_key, "fake_list")
    vendor.delay_s = 0.25
    call = {"jsonrpc": "2.0", "method": "tools/call"}
    batch = [
        call | {"id": 1, "params": {"name": "fake_list", "arguments": {}}},
        call | {"id": 2, "params": {"name": "fake_nothing", "arguments": {"a": "x" * 300}}},
        call | {"id": 3, "params": {"name": "fake_list", "arguments": []}},
    ]
    answer = await agent.http.post("/v1/mcp", json=batch, headers=headers(tenant.agent_key, {}))
    _, slow, unknown, malformed = await rows()
    assert slow.vendor_ms >= 250
    assert int(answer.headers["X-Vendor-Ms"]) == slow.vendor_ms
    assert int(answer.headers["X-Total-Ms"]) >= slow.duration_ms
    for row in (unknown, malformed):
        assert (row.vendor_ms, row.duration_ms < slow.duration_ms) == (0, True), "what was before it is not its own"
    sizes = [len(json.dumps(each, separators=(",", ":"))) for each in batch]
    assert [slow.request_bytes, unknown.request_bytes, malformed.request_bytes] == sizes
    assert malformed.error_code == "bad_arguments"


async def test_opening_a_session_and_listing_tools_is_the_sessions_time(
    agent: Agent, tenant: Tenant, vendor: FakeVendor
) -> None:
    vendor.list_delay_s = 0.25
    cold = await agent.call(tenant.agent_key, "fake_list")
    warm = await agent.call(tenant.agent_key, "fake_list")
    assert int(cold.headers["X-Session-Ms"]) >= 250
    assert int(cold.headers["X-Total-Ms"]) >= int(cold.headers["X-Session-Ms"]) + int(cold.headers["X-Vendor-Ms"])
    assert int(warm.headers["X-Session-Ms"]) < 250


async def test_opening_the_credential_is_authentications_time(
    agent: Agent, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = open_destination.destination

    def slow(*arguments: Any) -> Any:
        time.sleep(0.25)
        return opened(*arguments)

    monkeypatch.setattr(open_destination, "destination", slow)
    answer = await agent.call(tenant.agent_key, "fake_list")
    assert int(answer.headers["X-Auth-Ms"]) >= 250


async def test_two_hundred_callers_with_one_id_get_their_own_answers(
    agent: Agent, tenant: Tenant, vendor: FakeVendor
) -> None:
    import asyncio

    vendor.delay_s = 0.01
    answers = await asyncio.gather(*(agent.call(tenant.agent_key, "fake_list", nonce=n) for n in range(200)))
    assert [json.loads(a.content)["result"]["structuredContent"]["nonce"] for a in answers] == list(range(200))
    assert len(await rows()) == 200
