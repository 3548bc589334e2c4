"""Rows that change while they are loaded, and a slow database: no caller gets in on old rows, no caller hangs."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Never

import pytest

from credentials.models import Credential
from gateway.coordination import epochs
from gateway.coordination.store import CoordinationUnavailable
from oauth_ext import bearer as bearers
from oauth_ext.services.agent_keys import revoke_agent_key
from proxy import caller_cache, runtime, shared_rows
from tests.api.proxy.conftest import Agent
from tests.factories.tenant import Tenant
from tests.factories.threads import in_thread
from tests.fakes.vendor import FakeVendor


class Held:
    """A function that does its work and keeps the result back until `release`, from call number `first` on."""

    def __init__(self, work: Callable[..., Any], first: int = 1) -> None:
        self._work, self._first, self._calls = work, first, 0
        self.is_holding, self._may_go = threading.Event(), threading.Event()

    def __call__(self, *args: Any) -> Any:
        result = self._work(*args)
        self._calls += 1
        if self._calls >= self._first and not self._may_go.is_set():
            self.is_holding.set()
            assert self._may_go.wait(20)
        return result

    def release(self) -> None:
        self._may_go.set()


@pytest.fixture
def held() -> Iterator[list[Held]]:
    """Held threads, which are let go in the end."""
    made: list[Held] = []
    yield made
    for each in made:
        each.release()


async def test_a_load_that_began_before_a_revocation_lets_nobody_in(
    agent: Agent, tenant: Tenant, vendor: FakeVendor, held: list[Held], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await agent.call(tenant.agent_key, "fake_list")).status_code == 200
    runtime.current().store.bump_epochs([epochs.subject(tenant.client.subject)])
    # It saw the key, and takes long to say so.
    held.append(Held(bearers.load_identity))
    monkeypatch.setattr(bearers, "load_identity", held[0])
    early = asyncio.ensure_future(agent.call(tenant.agent_key, "fake_list"))
    await asyncio.to_thread(held[0].is_holding.wait, 10)
    await in_thread(lambda: revoke_agent_key(actor=tenant.owner, client=tenant.client))
    vendor.seen.clear()
    late = asyncio.ensure_future(agent.call(tenant.agent_key, "fake_list"))
    await asyncio.sleep(0.2)  # it waits for the load that has begun
    held[0].release()
    assert (await late).status_code == 401
    assert (await early).status_code in (200, 401), "it was there before the revocation"
    assert (await agent.call(tenant.agent_key, "fake_list")).status_code == 401


async def test_a_change_whose_bump_was_lost_is_seen_when_the_entries_are_old(
    agent: Agent, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime.current().store.bump_epochs([epochs.organization(tenant.organization.id), epochs.CATALOG])
    assert "isError" not in (await agent.call(tenant.agent_key, "fake_list")).json()["result"]
    await in_thread(Credential.objects.all().delete)
    monkeypatch.setattr(shared_rows, "MAX_AGE_S", 0.0)
    result = (await agent.call(tenant.agent_key, "fake_list")).json()["result"]
    assert result["isError"]
    assert "not connected" in result["content"][0]["text"]


class Later:
    """The clock of the process, set forward."""

    ahead_s = 0.0
    time = staticmethod(time.time)

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead_s


async def test_a_change_whose_bump_was_lost_is_in_force_when_promised(
    agent: Agent, tenant: Tenant, jwt: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A caller may be made of an organization that has almost reached its age, and then reaches its own."""
    clock = Later()
    for module in (caller_cache, shared_rows):
        monkeypatch.setattr(module, "time", clock)

    async def is_refused(bearer: str) -> bool:
        return "isError" in (await agent.call(bearer, "fake_list")).json()["result"]

    runtime.current().store.bump_epochs([epochs.organization(tenant.organization.id), epochs.CATALOG])
    assert not await is_refused(tenant.agent_key)
    await in_thread(Credential.objects.all().delete)
    clock.ahead_s = shared_rows.MAX_AGE_S - 5.0
    assert not await is_refused(jwt), "loaded now, of what was there"
    clock.ahead_s = epochs.IN_FORCE_WITHIN_S
    assert await is_refused(jwt)


async def test_recording_the_last_use_holds_no_call_up(
    agent: Agent, tenant: Tenant, jwt: str, held: list[Held], monkeypatch: pytest.MonkeyPatch
) -> None:
    held.append(Held(bearers.record_use))
    monkeypatch.setattr(bearers, "record_use", held[0])
    for bearer in (tenant.agent_key, jwt):
        assert (await asyncio.wait_for(agent.call(bearer, "fake_list"), 5)).status_code == 200
    assert held[0].is_holding.is_set()


async def test_a_database_that_does_not_answer_is_given_up(
    agent: Agent, tenant: Tenant, held: list[Held], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caller_cache, "DB_DEADLINE_S", 0.2)
    held.append(Held(bearers.load_identity))
    monkeypatch.setattr(bearers, "load_identity", held[0])
    started = time.monotonic()
    answer = await agent.call(tenant.agent_key, "fake_list")
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    assert time.monotonic() - started < 5
    held[0].release()
    monkeypatch.setattr(caller_cache, "DB_DEADLINE_S", 30.0)
    assert (await agent.call(tenant.agent_key, "fake_list")).status_code == 200


async def test_a_store_that_cannot_be_asked_lets_nobody_in(
    agent: Agent, tenant: Tenant, jwt: str, vendor: FakeVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file of one host has nothing to fall back on: no count, no call."""

    async def is_locked(*args: object) -> Never:
        raise CoordinationUnavailable("OperationalError")

    assert (await agent.call(tenant.agent_key, "fake_list")).status_code == 200
    vendor.seen.clear()
    monkeypatch.setattr(runtime.current().store, "admit", is_locked)
    refused = [await agent.call(tenant.agent_key, "fake_list"), await agent.cli(jwt, "list")]
    assert [(answer.status_code, answer.headers["Retry-After"]) for answer in refused] == [(503, "5")] * 2
    assert vendor.seen["tools/call"] == 0
    monkeypatch.undo()
    assert (await agent.call(tenant.agent_key, "fake_list")).status_code == 200


async def test_a_store_that_lost_its_memory_vouches_for_nobody(
    agent: Agent, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loaded, then revoked, then everything forgotten: "never bumped" must not look like "unchanged"."""
    assert (await agent.call(tenant.agent_key, "fake_list")).status_code == 200
    caller = await runtime.current().caller_cache.get(tenant.agent_key, "127.0.0.1")
    assert caller.epochs is not None
    assert all(caller.epochs)
    await in_thread(lambda: revoke_agent_key(actor=tenant.owner, client=tenant.client))
    store = runtime.current().store
    admit = store.admit

    async def forgetful(*args: Any) -> Any:
        return replace(await admit(*args), epochs=("", "", ""))

    monkeypatch.setattr(store, "admit", forgetful)
    assert (await agent.call(tenant.agent_key, "fake_list")).status_code == 401


async def test_what_has_not_changed_stays_the_object_it_was(
    agent: Agent, tenant: Tenant, other_tenant: Tenant, jwt: str, vendor: FakeVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Callers of different age share it, and with it what was worked out for each vendor."""
    loads: list[object] = []
    load = shared_rows.catalog_registry.load

    def counted() -> Any:
        loads.append(catalog := load())
        return catalog

    monkeypatch.setattr(shared_rows.catalog_registry, "load", counted)
    cache = runtime.current().caller_cache
    first = await cache.reload(tenant.agent_key)
    monkeypatch.setattr(shared_rows, "MAX_AGE_S", 0.0)
    second = await cache.reload(jwt)
    other = await cache.reload(other_tenant.agent_key)
    assert len(loads) == 3
    assert first.catalog is second.catalog is other.catalog
    assert first.organization is second.organization
    assert first.organization is not other.organization
