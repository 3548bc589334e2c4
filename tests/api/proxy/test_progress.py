"""Progress of a running tool: relayed as it comes to the caller who asked for it, and to nobody else.

Spec: D110 · protocol.md A.2, A.5
"""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import httpx
import pytest

from audit.pending_record import AuditUnavailable
from gateway.coordination.rules import Rule
from proxy import runtime
from proxy.calls import call_audit
from proxy.progress_relay import MAX_PENDING
from proxy.protocol.sse import SSEParser
from proxy.vendors.response import UNREAD_BYTES
from proxy.views import progress_response
from tests.api.proxy.conftest import Agent, access_token, headers
from tests.api.proxy.streams import Stream, streaming
from tests.api.proxy.traces import busy_connections, rows, until
from tests.factories.tenant import Tenant, load_vendor, restrict_tools
from tests.factories.threads import in_thread
from tests.fakes.vendor import FakeVendor


@pytest.fixture
def reporting(vendor: FakeVendor) -> FakeVendor:
    """The vendor, whose tools report three times before they answer."""
    vendor.reply, vendor.steps = "sse", 3
    return vendor


def asked(token: object, tool: str = "fake_list", **arguments: Any) -> dict[str, Any]:
    return {"name": tool, "arguments": arguments, "_meta": {"progressToken": token}}


def messages_of(answer: httpx.Response) -> list[dict[str, Any]]:
    assert answer.headers["Content-Type"] == "text/event-stream"
    events = SSEParser().feed(answer.content)
    assert all((event.event, event.id, event.retry_ms) == ("message", None, None) for event in events)
    return [json.loads(event.data) for event in events]


@pytest.mark.parametrize("token", ["mine", "", 7, 0], ids=repr)
async def test_reports_come_in_order_and_the_response_last(
    agent: Agent, tenant: Tenant, reporting: FakeVendor, token: object
) -> None:
    answer = await agent.rpc(tenant.agent_key, "tools/call", asked(token, site="hq"), id="one")
    *notes, response = messages_of(answer)
    assert notes == [
        {
            "jsonrpc": "2.0",
            "method": "notifications/progress",
            "params": {"progressToken": token, "progress": step, "total": 3, "message": '{"site": "hq"}'},
        }
        for step in (1, 2, 3)
    ]
    assert all(type(note["params"]["progressToken"]) is type(token) for note in notes)
    assert (response["id"], response["result"]["structuredContent"]) == ("one", {"site": "hq"})
    (row,) = await rows()
    assert (row.status, row.error_code) == ("success", "")


async def test_headers_of_a_stream(agent: Agent, tenant: Tenant, reporting: FakeVendor) -> None:
    answer = await agent.rpc(tenant.agent_key, "tools/call", asked(1), Origin="http://localhost:6274")
    assert answer.status_code == 200
    assert answer.headers["Cache-Control"] == "no-cache, no-transform"
    assert answer.headers["X-Accel-Buffering"] == "no"
    assert answer.headers["RateLimit"].startswith('"tools";r=')
    assert answer.headers["Access-Control-Allow-Origin"] == "http://localhost:6274"
    assert answer.headers["X-Request-Id"] == (await rows())[0].request_id
    assert answer.headers["X-Auth-Ms"].isdigit()
    assert answer.headers["X-Session-Ms"].isdigit()
    assert not {"X-Vendor-Ms", "X-Total-Ms", "Mcp-Session-Id", "Content-Length"} & set(answer.headers)


async def test_a_vendors_own_endpoint_does_the_same(agent: Agent, jwt: str, reporting: FakeVendor) -> None:
    answer = await agent.rpc(jwt, "tools/call", asked("mine"), path="/v1/fake/mcp")
    assert [one["params"]["progressToken"] for one in messages_of(answer)[:-1]] == ["mine"] * 3
    assert answer.headers["Deprecation"].startswith("@")


async def test_reports_arrive_while_the_tool_runs(agent: Agent, tenant: Tenant, reporting: FakeVendor) -> None:
    reporting.pace = asyncio.Semaphore(0)  # the tool goes on only when its last report has arrived here
    async with streaming(tenant.agent_key, asked(1)) as stream:
        for step in (1, 2, 3):
            assert (await stream.read() or {})["params"]["progress"] == step
            reporting.pace.release()
        assert len(await stream.read_all()) == 1


async def test_without_reports_the_answer_is_json(agent: Agent, tenant: Tenant, vendor: FakeVendor) -> None:
    for vendor.reply in ("json", "sse"):
        answer = await agent.rpc(tenant.agent_key, "tools/call", asked(1, site="hq"))
        assert answer.headers["Content-Type"] == "application/json"
        assert answer.headers["X-Vendor-Ms"].isdigit()
        assert answer.json()["result"]["structuredContent"] == {"site": "hq"}


@pytest.mark.parametrize("accept", ["application/json", "*/*", "application/json, text/event-stream;q=0"])
async def test_who_does_not_read_streams_gets_json_and_no_vendor_is_asked(
    agent: Agent, tenant: Tenant, reporting: FakeVendor, accept: str
) -> None:
    answer = await agent.rpc(tenant.agent_key, "tools/call", asked(1), Accept=accept)
    assert answer.json()["result"]["structuredContent"] == {}
    assert "_meta" not in reporting.bodies[-1]["params"]


@pytest.mark.parametrize("token", [None, True, 1.5, {"a": 1}], ids=repr)
async def test_what_is_no_token_asks_for_nothing(
    agent: Agent, tenant: Tenant, reporting: FakeVendor, token: object
) -> None:
    answer = await agent.rpc(tenant.agent_key, "tools/call", asked(token))
    assert answer.json()["result"]["structuredContent"] == {}
    assert "_meta" not in reporting.bodies[-1]["params"]


async def test_a_batch_is_answered_as_json(agent: Agent, tenant: Tenant, reporting: FakeVendor) -> None:
    batch = [{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": asked(1)}]
    answer = await agent.http.post("/v1/mcp", json=batch, headers=headers(tenant.agent_key, {}))
    assert answer.json()[0]["result"]["structuredContent"] == {}
    assert "_meta" not in reporting.bodies[-1]["params"]


async def test_a_command_never_streams(agent: Agent, jwt: str, reporting: FakeVendor) -> None:
    sent = headers(jwt, {})
    answer = await agent.http.post("/v1/fake/cli", json={"tool": "list", "args": {}, "_meta": {}}, headers=sent)
    assert answer.headers["Content-Type"] == "application/json"
    assert (await agent.cli(jwt, "list")).status_code == 200
    assert "_meta" not in reporting.bodies[-1]["params"]


async def test_two_callers_with_one_token_get_their_own_only(
    agent: Agent, tenant: Tenant, reporting: FakeVendor
) -> None:
    reporting.step_s = 0.02
    callers = [agent.rpc(tenant.agent_key, "tools/call", asked(1, caller=n)) for n in range(8)]
    for number, answer in enumerate(await asyncio.gather(*callers)):
        *notes, response = messages_of(answer)
        assert [(note["params"]["progressToken"], note["params"]["message"]) for note in notes] == [
            (1, json.dumps({"caller": number}))
        ] * 3
        assert response["result"]["structuredContent"] == {"caller": number}
    tokens = [body["params"]["_meta"]["progressToken"] for body in reporting.bodies if body["method"] == "tools/call"]
    assert len(set(tokens)) == 8
    assert reporting.seen["initialize"] == 1


async def test_nothing_else_of_the_vendors_stream_is_relayed(
    agent: Agent, tenant: Tenant, reporting: FakeVendor
) -> None:
    def note(method: str, **params: Any) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "method": method, "params": params}

    reporting.strays = [
        note("notifications/message", level="info", data="x" * 70_000),
        note("notifications/progress", progressToken=1, progress=9),
        note("notifications/progress", progressToken="someone else's", progress=9),
        note("notifications/tools/list_changed"),
        note("notifications/progress", progressToken=3, progress=9, message="x" * 70_000),
        {"jsonrpc": "2.0", "id": 77, "method": "ping"},
        {"jsonrpc": "2.0", "id": 78, "result": {"content": []}},
    ]
    messages = messages_of(await agent.rpc(tenant.agent_key, "tools/call", asked(1)))
    assert [one.get("params", {}).get("progress") for one in messages] == [1, 2, 3, None]


async def test_log_messages_of_a_call_are_relayed_on_its_stream_as_they_come(
    agent: Agent, tenant: Tenant, reporting: FakeVendor
) -> None:
    said = {"level": "warning", "logger": "disk", "data": {"free": "1 %\nleft"}, "_meta": {"a": 1}}
    reporting.strays = [{"jsonrpc": "2.0", "method": "notifications/message", "params": said}]
    messages = messages_of(await agent.rpc(tenant.agent_key, "tools/call", asked(1)))
    methods = [one.get("method") for one in messages]
    assert methods == ["notifications/message", "notifications/progress"] * 3 + [None]
    assert [one["params"] for one in messages if one.get("method") == "notifications/message"] == [said] * 3
    plain = await agent.rpc(tenant.agent_key, "tools/call", {"name": "fake_list", "arguments": {}})
    assert plain.headers["Content-Type"] == "application/json", "who asks for no progress is answered at once"


async def test_refusals_come_before_any_stream(
    agent: Agent, tenant: Tenant, other_tenant: Tenant, reporting: FakeVendor, settings: Any
) -> None:
    settings.TOOL_CALLS = Rule("tools", limit=3, window_s=3600)
    await in_thread(lambda: load_vendor(reporting.url, slug="globex"))
    narrow = await in_thread(lambda: access_token(tenant, "mcp:globex"))
    scope = await agent.rpc(narrow, "tools/call", asked(1))
    denied = await agent.rpc(other_tenant.agent_key, "tools/call", asked(1))
    await in_thread(lambda: restrict_tools(tenant.organization, "fake_list"))
    unlisted = await agent.rpc(tenant.agent_key, "tools/call", asked(1, "fake_write"))
    unknown = await agent.rpc(tenant.agent_key, "tools/call", asked(1, "fake_nothing"))
    full = await agent.rpc(tenant.agent_key, "tools/call", asked(1))
    assert [one.status_code for one in (scope, denied, unlisted, unknown, full)] == [403, 200, 200, 200, 429]
    assert denied.json()["result"]["isError"] is True
    assert unlisted.json()["result"]["isError"] is True
    assert unknown.json()["error"]["code"] == -32602
    assert reporting.seen["tools/call"] == 0


async def test_a_vendor_that_fails_after_its_reports_is_an_error_at_the_end(
    agent: Agent, tenant: Tenant, reporting: FakeVendor
) -> None:
    reporting.reply = "silence"
    *notes, last = messages_of(await agent.rpc(tenant.agent_key, "tools/call", asked(1)))
    assert len(notes) == 3
    assert last["error"]["data"] == {"vendor": "fake", "reason": "bad_vendor_response"}
    assert [row.error_code for row in await rows()] == ["bad_vendor_response"]


async def test_no_result_without_its_row(
    agent: Agent, tenant: Tenant, reporting: FakeVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lost(*_: Any) -> None:
        raise AuditUnavailable("the disk is full")

    monkeypatch.setattr(call_audit, "record_outcome", lost)
    *notes, last = messages_of(await agent.rpc(tenant.agent_key, "tools/call", asked(1), id=5))
    assert len(notes) == 3
    assert (last["id"], last["error"]["code"], last["error"]["data"]) == (5, -32603, {"reason": "unavailable"})
    assert "result" not in last
    assert "disk" not in json.dumps(last)


async def test_without_a_stream_a_lost_row_is_503(
    agent: Agent, tenant: Tenant, vendor: FakeVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lost(*_: Any) -> None:
        raise AuditUnavailable("the disk is full")

    monkeypatch.setattr(call_audit, "record_outcome", lost)
    assert (await agent.rpc(tenant.agent_key, "tools/call", asked(1))).status_code == 503


async def test_the_response_waits_for_its_row(
    agent: Agent, tenant: Tenant, reporting: FakeVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_commit = asyncio.Event()
    write = call_audit.record_outcome

    async def slow(*arguments: Any) -> None:
        await may_commit.wait()
        await write(*arguments)

    monkeypatch.setattr(call_audit, "record_outcome", slow)
    async with streaming(tenant.agent_key, asked(1)) as stream:
        assert [(await stream.read() or {})["params"]["progress"] for _ in range(3)] == [1, 2, 3]
        reading = asyncio.ensure_future(stream.read())
        assert not (await asyncio.wait([reading], timeout=0.2))[0]
        may_commit.set()
        assert "result" in (await reading or {})
        assert len(await rows()) == 1


@pytest.mark.parametrize("tool", ["fake_list", "fake_write"])
async def test_who_leaves_ends_the_call(agent: Agent, tenant: Tenant, reporting: FakeVendor, tool: str) -> None:
    reporting.steps, reporting.step_s = 100, 0.05
    async with streaming(tenant.agent_key, asked(1, tool)) as stream:
        await stream.read()
        await stream.leave()
    (row,) = await rows()
    assert (row.status, row.error_code, row.tool) == ("error", "client_closed", tool)
    await until(lambda: reporting.broken_off == 1 and reporting.seen["notifications/cancelled"] == 1)
    call, cancelled = reporting.bodies[-2:]
    assert cancelled["params"] == {"requestId": call["id"]}
    await until(lambda: busy_connections() == 0)
    answer = await agent.call(tenant.agent_key, "fake_list", site="hq")
    assert answer.json()["result"]["structuredContent"] == {"site": "hq"}


async def test_who_leaves_while_nobody_reads_ends_the_call_too(
    agent: Agent, tenant: Tenant, vendor: FakeVendor
) -> None:
    vendor.reply = "flood"
    async with streaming(tenant.agent_key, asked(1)) as stream:
        await asyncio.sleep(0.2)
        await stream.leave()
    (row,) = await rows()
    assert row.error_code == "client_closed"
    await until(lambda: vendor.broken_off == 1)


async def test_a_flood_waits_for_its_reader_and_the_deadline_holds(
    agent: Agent, tenant: Tenant, vendor: FakeVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[int] = []
    vendor.reply = "flood"
    began_s = time.monotonic()
    async with streaming(tenant.agent_key, asked(1)) as stream:
        lags = []
        while not (found := await rows()):
            held.append(held_bytes())
            before_s = time.monotonic()
            await asyncio.sleep(0.05)
            lags.append(time.monotonic() - before_s - 0.05)
        assert time.monotonic() - began_s > 4  # the vendor's timeout is 5 s
        assert (found[0].status, found[0].error_code) == ("error", "vendor_timeout")
        *notes, last = await stream.read_all()
        assert len(notes) <= MAX_PENDING + 2
        assert last["error"]["data"]["reason"] == "vendor_timeout"
    assert 0 < max(held) < UNREAD_BYTES + 512 * 1024
    assert sorted(lags)[len(lags) // 2] < 1  # the loop is not held


def held_bytes() -> int:
    answers = [
        connection._response for one in runtime.current().transport._by_origin.values() for connection in one._busy
    ]
    return sum(len(piece) for answer in answers if answer is not None for piece in answer.pieces)


async def test_a_silent_stream_is_kept_awake(
    agent: Agent, tenant: Tenant, reporting: FakeVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_response, "PING_EVERY_S", 0.05)
    reporting.steps, reporting.step_s = 1, 2.0
    async with streaming(tenant.agent_key, asked(1)) as stream:
        assert len(await stream.read_all()) == 2
        assert stream.comments >= 3


async def test_a_call_that_is_cancelled_before_its_stream_is_cancelled(
    agent: Agent, tenant: Tenant, reporting: FakeVendor
) -> None:
    await agent.call(tenant.agent_key, "fake_list")
    reporting.delay_s = 3
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": asked(1)}
    stream = Stream("/v1/mcp", tenant.agent_key, body)
    await until(lambda: reporting.seen["tools/call"] == 2)
    stream.task.cancel()
    await asyncio.wait([stream.task])
    assert stream.task.cancelled()
    await until(lambda: busy_connections() == 0)
