"""Calls that nobody waits for any more, as the caller left or time is over: the vendor is told, the log says it."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from audit.models import RequestAuditEntry
from gateway import hot_path_app
from proxy import runtime
from tests.api.proxy.conftest import Agent
from tests.api.proxy.streams import Stream
from tests.api.proxy.traces import busy_connections, until
from tests.factories.tenant import Tenant, load_vendor
from tests.factories.threads import in_thread
from tests.fakes.vendor import FakeVendor

ROUTES = ("mcp", "cli")


@pytest.fixture(autouse=True)
def _watch_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hot_path_app, "WATCH_AFTER_S", 0.02)


@pytest.fixture
async def warm(agent: Agent, tenant: Tenant, vendor: FakeVendor) -> FakeVendor:
    """The vendor, whose tools are known; from now on it takes half a minute for a call."""
    assert (await agent.call(tenant.agent_key, "fake_fail")).status_code == 200
    vendor.delay_s = 30
    vendor.bodies.clear()
    vendor.seen.clear()
    return vendor


def begin(route: str, tenant: Tenant, jwt: str, tool: str) -> Stream:
    """A call whose caller can leave."""
    if route == "cli":
        return Stream("/v1/fake/cli", jwt, {"tool": tool})
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool}}
    return Stream("/v1/mcp", tenant.agent_key, body)


async def rows() -> list[RequestAuditEntry]:
    return await in_thread(lambda: list(RequestAuditEntry.objects.exclude(tool="fake_fail")))


def cancelled(vendor: FakeVendor) -> list[Any]:
    """The ids of the requests that the vendor was told to give up."""
    return [each["params"]["requestId"] for each in vendor.bodies if each.get("method") == "notifications/cancelled"]


def called(vendor: FakeVendor) -> list[Any]:
    return [each["id"] for each in vendor.bodies if each.get("method") == "tools/call"]


@pytest.mark.parametrize("tool", ["fake_list", "fake_write"])
@pytest.mark.parametrize("route", ROUTES)
async def test_who_leaves_without_a_stream_ends_the_call(
    agent: Agent, tenant: Tenant, jwt: str, warm: FakeVendor, route: str, tool: str
) -> None:
    call = begin(route, tenant, jwt, tool)
    await until(lambda: warm.seen["tools/call"])
    call._left.set()
    await asyncio.wait_for(call.task, 20)
    assert call._sent.empty(), "nobody is answered"
    (row,) = await rows()
    assert (row.status, row.error_code, row.tool, row.source) == ("error", "client_closed", tool, route)
    await until(lambda: warm.seen["notifications/cancelled"])
    assert cancelled(warm) == called(warm)
    await until(lambda: busy_connections() == 0)
    warm.delay_s = 0
    assert (await agent.cli(jwt, "list", {"site": "hq"})).status_code == 200


async def test_who_leaves_while_the_tool_is_looked_for_is_recorded(
    agent: Agent, tenant: Tenant, jwt: str, vendor: FakeVendor
) -> None:
    vendor.hang_s = 30
    call = begin("cli", tenant, jwt, "list")
    await until(lambda: vendor.seen["initialize"])
    call._left.set()
    await asyncio.wait_for(call.task, 20)
    (row,) = await rows()
    assert (row.status, row.error_code, row.vendor, row.tool) == ("error", "client_closed", "fake", "list")


async def test_a_shared_read_ends_when_the_last_caller_has_left(
    agent: Agent, tenant: Tenant, jwt: str, warm: FakeVendor
) -> None:
    first, second = begin("cli", tenant, jwt, "list"), begin("cli", tenant, jwt, "list")
    await until(lambda: warm.seen["tools/call"])
    await until(lambda: 2 in runtime.current().results._flights._waiters.values())
    first._left.set()
    await asyncio.wait_for(first.task, 20)
    assert warm.seen["notifications/cancelled"] == 0, "one still waits"
    assert busy_connections() == 1
    second._left.set()
    await asyncio.wait_for(second.task, 20)
    await until(lambda: warm.seen["notifications/cancelled"])
    assert cancelled(warm) == called(warm)
    assert len(called(warm)) == 1
    assert [row.error_code for row in await rows()] == ["client_closed"] * 2


async def test_a_call_that_is_answered_is_not_cancelled(
    agent: Agent, tenant: Tenant, jwt: str, warm: FakeVendor
) -> None:
    warm.delay_s = 0.2
    for route in ROUTES:
        call = begin(route, tenant, jwt, "fake_list")
        await call.begin()
        assert call.status == 200
        await call.leave()
    assert warm.seen["notifications/cancelled"] == 0
    assert {row.status for row in await rows()} == {"success"}


@pytest.mark.parametrize("reply", ["json", "sse"])
@pytest.mark.parametrize("route", ROUTES)
async def test_our_own_deadline_ends_the_call_at_the_vendor(
    agent: Agent, tenant: Tenant, jwt: str, vendor: FakeVendor, route: str, reply: str
) -> None:
    """Also when the answer has begun, as an event stream that then says nothing."""
    await in_thread(lambda: load_vendor(vendor.url, timeout_s=1))
    assert (await agent.call(tenant.agent_key, "fake_fail")).status_code == 200
    vendor.bodies.clear()
    vendor.reply = reply
    if reply == "json":
        vendor.delay_s = 30
    else:
        vendor.reply = "asks"
        vendor.refusals = Deaf()
    began_s = time.monotonic()
    if route == "cli":
        answer = await agent.cli(jwt, "list")
        assert (answer.status_code, answer.json()) == (502, {"error": "The vendor didn’t respond in time."})
    else:
        answer = await agent.call(tenant.agent_key, "fake_list")
        assert answer.json()["error"]["data"] == {"vendor": "fake", "reason": "vendor_timeout"}
    assert time.monotonic() - began_s < 15
    (row,) = await rows()
    assert (row.status, row.error_code) == ("error", "vendor_timeout")
    await until(lambda: cancelled(vendor))
    assert cancelled(vendor) == called(vendor)
    await until(lambda: busy_connections() == 0)


class Deaf(list[dict[str, Any]]):
    """A vendor that waits for an answer to its question and never hears one."""

    def append(self, item: dict[str, Any]) -> None:
        return


async def test_a_handshake_is_never_cancelled(agent: Agent, tenant: Tenant, jwt: str, vendor: FakeVendor) -> None:
    """The protocol forbids it."""
    await in_thread(lambda: load_vendor(vendor.url, timeout_s=1))
    vendor.hang_s = 30
    answer = await agent.cli(jwt, "list")
    assert answer.status_code == 502
    assert vendor.seen["initialize"] == 1
    assert vendor.seen["notifications/cancelled"] == 0


async def test_a_list_nobody_waits_for_leaves_no_row(agent: Agent, tenant: Tenant, vendor: FakeVendor) -> None:
    vendor.hang_s = 30
    call = Stream("/v1/mcp", tenant.agent_key, {"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    await until(lambda: vendor.seen["initialize"])
    call._left.set()
    await asyncio.wait_for(call.task, 20)
    assert await rows() == []
