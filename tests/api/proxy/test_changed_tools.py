"""A vendor says that its tools changed: its list is fetched before it is used again, not more often than may be.

Spec: protocol.md A.5
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from django.conf import LazySettings

from proxy import runtime
from proxy.vendors import tool_directory
from proxy.vendors.tool_directory import REFETCH_AFTER_S, RETRY_AFTER_S
from tests.api.proxy.conftest import Agent
from tests.api.proxy.tool_lists import NEW_TOOL, ListingVendor, later, listed, settled
from tests.api.proxy.traces import until
from tests.factories.tenant import Tenant, connect
from tests.factories.threads import in_thread
from tests.fakes.vendor import TOOLS, running_vendor

KNOWN = ["fake_fail", "fake_list", "fake_write"]
WITH_NEW = sorted([*KNOWN, "fake_new"])


@pytest.fixture
async def vendor() -> AsyncIterator[ListingVendor]:
    async with running_vendor(ListingVendor) as running:
        assert isinstance(running, ListingVendor)
        yield running


async def notify_changed(
    agent: Agent, tenant: Tenant, vendor: ListingVendor, *, times: int = 1, token: bool = False
) -> None:
    """The list is known for a while, and a call brought the news."""
    await listed(agent, tenant.agent_key)
    later(REFETCH_AFTER_S)
    vendor.news, vendor.tools = times, [*TOOLS, NEW_TOOL]
    await call(agent, tenant, token=token)
    vendor.news = 0


async def call(agent: Agent, tenant: Tenant, tool: str = "fake_write", *, token: bool = False) -> None:
    asked = {"name": tool, "arguments": {}, **({"_meta": {"progressToken": 1}} if token else {})}
    assert '"result"' in (await agent.rpc(tenant.agent_key, "tools/call", asked)).text


@pytest.mark.parametrize("times", [1, 20])
@pytest.mark.parametrize("token", [False, True], ids=["without progress", "with progress"])
async def test_the_next_list_is_a_new_one(
    agent: Agent, tenant: Tenant, other_tenant: Tenant, vendor: ListingVendor, times: int, token: bool
) -> None:
    await in_thread(lambda: connect(other_tenant.organization, other_tenant.owner))
    assert await listed(agent, other_tenant.agent_key) == (KNOWN, {})
    await notify_changed(agent, tenant, vendor, times=times, token=token)
    assert vendor.seen["tools/list"] == 2, "nothing is fetched until somebody needs it"
    for _ in range(3):
        assert await listed(agent, tenant.agent_key) == (WITH_NEW, {})
        assert await listed(agent, other_tenant.agent_key) == (KNOWN, {}), "the vendor said nothing to that one"
    assert vendor.seen["tools/list"] == 3


async def test_without_news_nothing_is_fetched(agent: Agent, tenant: Tenant, vendor: ListingVendor) -> None:
    await notify_changed(agent, tenant, vendor, times=0)
    assert await listed(agent, tenant.agent_key) == (KNOWN, {})
    assert vendor.seen["tools/list"] == 1


async def test_a_call_goes_by_the_new_list_too(agent: Agent, tenant: Tenant, jwt: str, vendor: ListingVendor) -> None:
    await notify_changed(agent, tenant, vendor)
    vendor.order.clear()
    assert (await agent.cli(jwt, "write")).status_code == 200
    assert vendor.order == ["tools/list", "tools/call"]


async def test_however_often_it_says_so_the_list_is_fetched_once_in_a_while(
    agent: Agent, tenant: Tenant, vendor: ListingVendor
) -> None:
    await notify_changed(agent, tenant, vendor)
    vendor.news = 3
    for fetched in (2, 3, 4):
        for _ in range(3):
            assert await listed(agent, tenant.agent_key) == (WITH_NEW, {})
            await call(agent, tenant)
        assert vendor.seen["tools/list"] == fetched
        later(REFETCH_AFTER_S)


async def test_news_while_the_list_is_on_its_way_are_not_lost(
    agent: Agent, tenant: Tenant, vendor: ListingVendor
) -> None:
    await listed(agent, tenant.agent_key)
    later(301)
    vendor.list_gate.clear()
    await listed(agent, tenant.agent_key)
    directory = runtime.current().directory
    await until(lambda: vendor.list_gate._waiters)  # the vendor has read its tools
    vendor.news, vendor.tools = 1, [*TOOLS, NEW_TOOL]
    await call(agent, tenant)
    vendor.news = 0
    assert directory._under_way
    vendor.list_gate.set()
    await settled()
    assert await listed(agent, tenant.agent_key) == (KNOWN, {}), "as it was when the vendor was asked, a moment ago"
    later(REFETCH_AFTER_S)
    assert await listed(agent, tenant.agent_key) == (WITH_NEW, {})


async def test_a_list_that_cannot_be_fetched_is_served_as_it_was(
    agent: Agent, tenant: Tenant, jwt: str, vendor: ListingVendor
) -> None:
    await notify_changed(agent, tenant, vendor)
    vendor.list_status = 503
    for _ in range(3):
        assert await listed(agent, tenant.agent_key) == (KNOWN, {"fake": "vendor_unavailable"})
        assert (await agent.cli(jwt, "write")).status_code == 200
    assert vendor.seen["tools/list"] == 2
    vendor.list_status = 200
    later(RETRY_AFTER_S)
    await listed(agent, tenant.agent_key)
    await settled()
    assert await listed(agent, tenant.agent_key) == (WITH_NEW, {})


async def test_nobody_waits_long_for_it_and_nobody_after_the_first(
    agent: Agent, tenant: Tenant, jwt: str, vendor: ListingVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool_directory, "CHANGE_WAIT_S", 0.2)
    await notify_changed(agent, tenant, vendor)
    vendor.list_gate.clear()
    assert (await agent.cli(jwt, "write")).status_code == 200, "by the list that is known"
    monkeypatch.setattr(tool_directory, "CHANGE_WAIT_S", 3600.0)
    for _ in range(3):
        assert await listed(agent, tenant.agent_key) == (KNOWN, {"fake": "vendor_timeout"})
        assert runtime.current().directory._under_way
    vendor.list_gate.set()
    await settled()
    assert await listed(agent, tenant.agent_key) == (WITH_NEW, {}), "what came behind them"
    assert vendor.seen["tools/list"] == 2


async def test_a_list_does_not_come_later_than_its_deadline(
    agent: Agent, tenant: Tenant, vendor: ListingVendor, monkeypatch: pytest.MonkeyPatch, settings: LazySettings
) -> None:
    monkeypatch.setattr(tool_directory, "CHANGE_WAIT_S", 3600.0)
    await notify_changed(agent, tenant, vendor)
    settings.TOOL_LIST_DEADLINE_S = 0.2
    vendor.list_gate.clear()
    assert await listed(agent, tenant.agent_key) == (KNOWN, {"fake": "vendor_timeout"})
    assert runtime.current().directory._under_way, "it ended without what it waited for"
    vendor.list_gate.set()
    await settled()
    assert await listed(agent, tenant.agent_key) == (WITH_NEW, {})
