"""A vendor that fails is named in tools/list beside its last good list, and delays nobody.

Spec: D111 · reliability.md 4
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
from django.conf import LazySettings

from gateway.catalog import registry
from proxy import runtime
from proxy.control_plane.discovery import discover
from proxy.vendors import tool_directory
from proxy.vendors.destination import Destination
from proxy.vendors.tool_directory import RETRY_AFTER_S, ToolDirectory
from tests.api.proxy.conftest import Agent
from tests.api.proxy.tool_lists import NEW_TOOL, ListingVendor, later, listed, settled
from tests.factories.tenant import Tenant, connect, load_vendor
from tests.factories.threads import in_thread
from tests.fakes.vendor import TOOLS, running_vendor
from tests.garbage import freed_without_collection

KNOWN = ["fake_fail", "fake_list", "fake_write"]
TTL_S = 301.0
Fails = Callable[[ListingVendor], None]


@pytest.fixture
async def vendor() -> AsyncIterator[ListingVendor]:
    async with running_vendor(ListingVendor) as running:
        assert isinstance(running, ListingVendor)
        yield running


async def failing(agent: Agent, tenant: Tenant) -> None:
    """The list is known and too old, and an attempt to fetch it again has ended."""
    assert await listed(agent, tenant.agent_key) == (KNOWN, {})
    later(TTL_S, tenant)
    assert await listed(agent, tenant.agent_key) == (KNOWN, {}), "it is asked behind this answer"
    await settled()


def answer_503(vendor: ListingVendor) -> None:
    vendor.list_status = 503


def forget_the_key(vendor: ListingVendor) -> None:
    vendor.list_status = 401


def answer_nonsense(vendor: ListingVendor) -> None:
    vendor.list_body = '{"tools": 7}'


def never_answer(vendor: ListingVendor) -> None:
    vendor.list_gate.clear()


@pytest.mark.parametrize(
    ("fail", "reason"),
    [
        (answer_503, "vendor_unavailable"),
        (forget_the_key, "vendor_rejected_credentials"),
        (answer_nonsense, "bad_vendor_response"),
        (never_answer, "vendor_timeout"),
    ],
)
async def test_a_vendor_that_fails_is_named_beside_its_last_good_list(
    agent: Agent, tenant: Tenant, other_tenant: Tenant, jwt: str, vendor: ListingVendor, fail: Fails, reason: str
) -> None:
    await in_thread(lambda: load_vendor(vendor.url, timeout_s=1))
    await in_thread(lambda: connect(other_tenant.organization, other_tenant.owner))
    assert await listed(agent, tenant.agent_key) == (KNOWN, {})
    assert await listed(agent, other_tenant.agent_key) == (KNOWN, {})
    fail(vendor)
    await failing(agent, tenant)
    for path, bearer in (("/v1/mcp", tenant.agent_key), ("/v1/mcp", jwt), ("/v1/fake/mcp", jwt)):
        assert await listed(agent, bearer, path) == (KNOWN, {"fake": reason})
    assert await listed(agent, other_tenant.agent_key) == (KNOWN, {}), "its list was not tried"
    assert "result" in (await agent.call(tenant.agent_key, "fake_list")).json()
    assert (await agent.cli(jwt, "write")).status_code == 200
    schema = await agent.http.get("/v1/fake/cli/schema", headers={"Authorization": f"Bearer {jwt}"})
    assert len(schema.json()["commands"]) == len(TOOLS)


async def test_other_vendors_are_listed_and_not_named(agent: Agent, tenant: Tenant, vendor: ListingVendor) -> None:
    async with running_vendor() as healthy:
        await in_thread(lambda: load_vendor(healthy.url, slug="globex"))
        await in_thread(lambda: connect(tenant.organization, tenant.owner, "globex"))
        await listed(agent, tenant.agent_key)
        vendor.list_status = 503
        later(TTL_S)
        await listed(agent, tenant.agent_key)
        await settled()
        names, unavailable = await listed(agent, tenant.agent_key)
        assert len(names) == 2 * len(TOOLS)
        assert unavailable == {"fake": "vendor_unavailable"}


async def test_it_is_named_until_a_list_comes(agent: Agent, tenant: Tenant, vendor: ListingVendor) -> None:
    vendor.list_status = 503
    assert await listed(agent, tenant.agent_key) == ([], {"fake": "vendor_unavailable"}), "nothing is known yet"
    vendor.list_status = 200
    assert await listed(agent, tenant.agent_key) == (KNOWN, {}), "and no pause is made for that"
    vendor.list_status = 503
    await failing(agent, tenant)
    vendor.list_status, vendor.tools = 200, [*TOOLS, NEW_TOOL]
    later(RETRY_AFTER_S)
    assert await listed(agent, tenant.agent_key) == (KNOWN, {"fake": "vendor_unavailable"})
    await settled()
    assert await listed(agent, tenant.agent_key) == (sorted([*KNOWN, "fake_new"]), {})


async def test_a_refresh_that_failed_is_repeated_after_a_pause(
    agent: Agent, tenant: Tenant, vendor: ListingVendor
) -> None:
    await listed(agent, tenant.agent_key)
    vendor.list_status = 503
    await failing(agent, tenant)
    for attempts in (2, 3, 4):
        for _ in range(3):
            assert await listed(agent, tenant.agent_key) == (KNOWN, {"fake": "vendor_unavailable"})
            assert "result" in (await agent.call(tenant.agent_key, "fake_list")).json()
            assert not runtime.current().directory._refreshing
        assert vendor.seen["tools/list"] == attempts
        later(RETRY_AFTER_S)
        await listed(agent, tenant.agent_key)
        await settled()


async def test_a_name_that_is_looked_for_in_vain_tells_of_the_failure_too(
    agent: Agent, tenant: Tenant, vendor: ListingVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool_directory, "REFETCH_AFTER_S", 0.0)
    await listed(agent, tenant.agent_key)
    vendor.list_status = 503
    answer = (await agent.call(tenant.agent_key, "fake_nothing")).json()
    assert answer["error"]["data"]["reason"] == "vendor_unavailable"
    assert await listed(agent, tenant.agent_key) == (KNOWN, {"fake": "vendor_unavailable"})
    vendor.list_status = 200
    later(RETRY_AFTER_S)
    await listed(agent, tenant.agent_key)
    await settled()
    assert await listed(agent, tenant.agent_key) == (KNOWN, {}), "tried again long before the list is too old"


async def test_nobody_waits_for_a_refresh_and_it_is_made_once(
    agent: Agent, tenant: Tenant, vendor: ListingVendor
) -> None:
    await listed(agent, tenant.agent_key)
    vendor.list_gate.clear()
    later(TTL_S)
    directory = runtime.current().directory
    for _ in range(5):
        assert await listed(agent, tenant.agent_key) == (KNOWN, {})
        assert "result" in (await agent.call(tenant.agent_key, "fake_list")).json()
        assert len(directory._refreshing) == 1, "it is still under way, and nobody else asks"
    assert vendor.seen["tools/list"] == 2
    vendor.list_gate.set()
    await settled()


async def test_a_list_that_is_not_known_delays_the_others_until_the_deadline_only(
    agent: Agent, tenant: Tenant, vendor: ListingVendor, settings: LazySettings
) -> None:
    settings.TOOL_LIST_DEADLINE_S = 0.2
    vendor.list_gate.clear()
    assert await listed(agent, tenant.agent_key) == ([], {"fake": "vendor_timeout"})
    assert runtime.current().directory._under_way, "whoever comes next may have it"
    vendor.list_gate.set()
    await settled()
    assert await listed(agent, tenant.agent_key) == (KNOWN, {})
    assert vendor.seen["tools/list"] == 1, "the first caller's deadline did not end the fetch"


async def test_a_directory_is_no_ring(agent: Agent, tenant: Tenant, vendor: ListingVendor) -> None:
    """Those that are made for one look hold a whole list."""
    await listed(agent, tenant.agent_key)
    one = await in_thread(lambda: registry.vendor_or_none("fake"))
    assert one is not None
    (key,) = runtime.current().directory._indexes
    where = Destination(key, lambda: (vendor.url, {"X-Api-Key": "right-key"}))
    with freed_without_collection(ToolDirectory):
        assert len(await discover(one, where, within_s=30)) == len(TOOLS)
        await asyncio.sleep(0)
