"""Processes share tool lists: one asks the vendor, the others take its answer from the store."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from django.conf import settings

from gateway.catalog.tool_config import ToolConfig
from gateway.catalog.vendor import Vendor
from proxy import runtime
from proxy.outcomes import VendorFault
from proxy.vendors import tool_directory
from proxy.vendors.destination import Destination, PoolKey
from proxy.vendors.stored_lists import StoredLists
from proxy.vendors.tool_directory import ToolDirectory
from tests.api.proxy.conftest import Agent
from tests.api.proxy.tool_lists import listed
from tests.factories.tenant import Tenant, connect
from tests.factories.threads import in_thread
from tests.factories.vendor_pools import new_pool, new_transport
from tests.fakes.memory_blobs import MemoryBlobs
from tests.fakes.vendor import TOOLS, FakeVendor, running_vendor

TTL_S, LONGEST_S = 300.0, 3_600.0


class Process:
    """The lists of one process, with a clock of the test's."""

    def __init__(self, vendor: FakeVendor, blobs: MemoryBlobs | None) -> None:
        self.vendor = vendor
        self.transport = new_transport()
        self.pool = new_pool(self.transport, idle_s=60.0)
        now_s = (lambda: blobs.now_s) if blobs else None
        self.directory = ToolDirectory(
            self.pool,
            ToolConfig(),
            ttl_s=TTL_S,
            max_pages=5,
            max_indexes=1_000,
            max_list_bytes=1_000_000,
            longest_s=LONGEST_S,
            stored=StoredLists(blobs, b"secret", ttl_s=int(LONGEST_S), now_s=now_s) if blobs and now_s else None,
        )

    async def names(self, org: int = 1, *, has_own_address: bool = False) -> list[str]:
        """The tools by the list that is known or fetched, after what was begun behind it."""
        url, headers = self.vendor.url, {"X-Api-Key": "right-key"}
        key = PoolKey.of(uuid.UUID(int=org), "fake", uuid.UUID(int=org), url, headers)
        where = Destination(key, lambda: (url, headers), fixed_address=not has_own_address)
        entry = Vendor(slug="fake", name="Fake", url=url)
        index = await self.directory.index(entry, where, deadline=asyncio.get_running_loop().time() + 10)
        await self.directory._refreshing.settled()
        await self.directory.aclose()
        return sorted(index.content.definitions)

    async def end(self) -> None:
        await self.pool.aclose()
        await self.transport.aclose()


class Deployment:
    def __init__(self, vendor: FakeVendor, monkeypatch: pytest.MonkeyPatch) -> None:
        self.vendor = vendor
        self.blobs = MemoryBlobs()
        self._monkeypatch = monkeypatch
        self._passed_s = 0.0
        self.processes: list[Process] = []

    def start(self, *, has_store: bool = True) -> Process:
        self.processes.append(Process(self.vendor, self.blobs if has_store else None))
        return self.processes[-1]

    def later(self, seconds: float) -> None:
        """So much time passes, for the store and for all processes."""
        self.blobs.now_s += seconds
        for process in self.processes:
            indexes = process.directory._indexes
            for key in indexes:
                index = indexes.peek(key)
                assert index is not None
                moved = replace(index, fetched_s=index.fetched_s - seconds, retry_s=index.retry_s - seconds)
                indexes.replace(key, moved)
            for shared in indexes._lists.by_digest.values():
                shared.confirmed_s -= seconds

    @property
    def lists(self) -> int:
        return self.vendor.seen["tools/list"]


@pytest.fixture
async def deployment(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Deployment]:
    async with running_vendor() as vendor:
        made = Deployment(vendor, monkeypatch)
        yield made
        for process in made.processes:
            await process.end()


KNOWN = ["fake_fail", "fake_list", "fake_write"]


async def test_a_new_process_asks_no_vendor(deployment: Deployment) -> None:
    first, second = deployment.start(), deployment.start()
    assert await first.names() == await second.names() == KNOWN
    assert deployment.vendor.seen == {"initialize": 1, "notifications/initialized": 1, "tools/list": 1}
    assert await second.names(org=2) == KNOWN
    assert deployment.lists == 2, "another organization's list is its own"


async def test_a_process_reads_the_body_of_a_list_once(deployment: Deployment) -> None:
    first, second = deployment.start(), deployment.start()
    for org in range(1, 6):
        await first.names(org)
    deployment.blobs.asked.clear()
    for org in range(1, 6):
        assert await second.names(org) == KNOWN
    assert [name.split(":")[1] for name in deployment.blobs.asked] == ["index", "list", *4 * ["index"]]
    assert (second.directory._indexes.distinct, deployment.lists) == (1, 5)


async def test_a_stored_list_keeps_its_age(deployment: Deployment) -> None:
    first, second = deployment.start(), deployment.start()
    await first.names()
    deployment.later(TTL_S + 1)
    deployment.vendor.tools = TOOLS[:1]
    assert await second.names() == KNOWN
    assert deployment.lists == 2, "it is too old, and is refreshed behind the call"
    assert await second.names() == ["fake_list"]
    deployment.later(LONGEST_S)
    third = deployment.start()
    assert await third.names() == ["fake_list"]
    assert deployment.lists == 3


async def test_one_process_refreshes_for_all(deployment: Deployment) -> None:
    processes = [deployment.start() for _ in range(4)]
    for process in processes:
        await process.names()
    deployment.vendor.tools = TOOLS[:1]
    deployment.later(TTL_S + 1)
    for process in processes:
        assert await process.names() == KNOWN
    assert deployment.lists == 2
    for process in processes:
        assert await process.names() == ["fake_list"]
    assert deployment.lists == 2


async def test_processes_that_refresh_at_the_same_time_are_led_by_one(deployment: Deployment) -> None:
    processes = [deployment.start() for _ in range(4)]
    for process in processes:
        await process.names()
    deployment.later(TTL_S + 1)
    deployment.vendor.list_delay_s = 0.05
    await asyncio.gather(*[process.names() for process in processes])
    assert deployment.lists == 2
    deployment.later(tool_directory.RETRY_AFTER_S)
    for process in processes:
        await process.names()
    assert deployment.lists == 2, "the others have the leader's list now"


async def test_a_leader_that_ends_is_replaced(deployment: Deployment) -> None:
    first, second = deployment.start(), deployment.start()
    for process in (first, second):
        await process.names()
    deployment.later(TTL_S + 1)
    assert await first.directory._stored.claim(next(iter(first.directory._indexes)), 10)  # type: ignore[union-attr]
    await second.names()
    assert deployment.lists == 1
    deployment.later(tool_directory.RETRY_AFTER_S)
    await second.names()
    assert deployment.lists == 2


async def test_a_list_that_is_not_newer_ends_no_failure(deployment: Deployment) -> None:
    process = deployment.start()
    await process.names()
    deployment.later(TTL_S + 1)
    deployment.vendor.api_key = "another-key"
    await process.names()
    deployment.later(tool_directory.RETRY_AFTER_S)
    await process.names()
    (key,) = process.directory._indexes
    index = process.directory._indexes.peek(key)
    assert index is not None
    assert index.failure is VendorFault.REJECTED_CREDENTIALS
    assert deployment.lists == 3


async def test_without_a_store_each_process_refreshes_its_own(deployment: Deployment) -> None:
    processes = [deployment.start(has_store=False), deployment.start(has_store=False)]
    for _ in range(2):
        for process in processes:
            assert await process.names() == KNOWN
        deployment.later(TTL_S + 1)
    assert deployment.lists == 4


async def test_a_store_that_goes_away_changes_no_answer(deployment: Deployment) -> None:
    first, second = deployment.start(), deployment.start()
    await first.names()
    deployment.blobs.is_away = True
    assert await second.names() == KNOWN
    assert deployment.lists == 2
    deployment.later(TTL_S + 1)
    deployment.vendor.tools = TOOLS[:1]
    for process in (first, second):
        await process.names()
        assert await process.names() == ["fake_list"]
    assert deployment.lists == 4


async def test_a_credential_confirms_an_equal_list_for_others(deployment: Deployment) -> None:
    """A hundred organizations, one request in each time to live."""
    process = deployment.start(has_store=False)
    for org in range(1, 101):
        await process.names(org)
    for round_number in range(1, 6):
        deployment.later(TTL_S + 1)
        for org in range(1, 101):
            await process.names(org)
        assert deployment.lists == 100 + round_number
    deployment.later(LONGEST_S)
    for org in range(1, 101):
        await process.names(org)
    assert deployment.lists == 205, "in the end each credential is asked for itself"


async def test_a_confirmation_reaches_other_processes(deployment: Deployment) -> None:
    first, second = deployment.start(), deployment.start()
    await first.names(1)
    await second.names(2)
    deployment.later(TTL_S + 1)
    await first.names(1)
    await second.names(2)
    assert deployment.lists == 3


async def test_a_changed_list_is_noticed_by_every_credential(deployment: Deployment) -> None:
    process = deployment.start()
    for org in (1, 2, 3):
        await process.names(org)
    deployment.vendor.tools = TOOLS[:1]
    deployment.later(TTL_S + 1)
    for org in (1, 2, 3):
        assert await process.names(org) == KNOWN
        assert await process.names(org) == ["fake_list"], "no other credential has confirmed the old list since"
    assert deployment.lists == 6


async def test_no_organization_confirms_the_list_of_an_address_that_is_anothers_own(deployment: Deployment) -> None:
    first, second = deployment.start(), deployment.start()
    for process in (first, second):
        for org in (1, 2, 3):
            await process.names(org, has_own_address=True)
    assert deployment.lists == 6, "each process asks, and none keeps the answer for others"
    deployment.later(TTL_S + 1)
    for process in (first, second):
        for org in (1, 2, 3):
            await process.names(org, has_own_address=True)
    assert deployment.lists == 12


@pytest.mark.skipif(not settings.REDIS_URL, reason="lists are shared by way of Redis")
async def test_a_process_that_starts_again_asks_no_vendor_for_its_tools(
    shared_lists: None, agent: Agent, tenant: Tenant, other_tenant: Tenant, jwt: str, vendor: FakeVendor
) -> None:
    await in_thread(lambda: connect(other_tenant.organization, other_tenant.owner))
    assert await listed(agent, tenant.agent_key) == (KNOWN, {})
    vendor.tools = TOOLS[:1]
    await runtime.stop()
    for bearer in (tenant.agent_key, jwt):
        assert await listed(agent, bearer) == (KNOWN, {})
    assert vendor.seen["tools/list"] == 1
    assert await listed(agent, other_tenant.agent_key) == (["fake_list"], {}), "another organization's list is its own"
    assert vendor.seen["tools/list"] == 2
