"""Rows that change while they are loaded, and a slow database: no caller gets in on old rows, no caller hangs."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any, Never

import msgspec
import pytest
from django.conf import settings

from credentials.models import Credential
from gateway.coordination import epochs
from gateway.coordination.store import CoordinationUnavailable
from gateway.lib import loop_reader
from gateway.lib.json_statement import JsonStatement
from oauth_ext import bearer as bearers
from oauth_ext.services.agent_keys import revoke_agent_key
from proxy import hot_path_database, last_used, runtime, shared_rows
from tests.api.proxy.conftest import Agent, StandingClock
from tests.factories.tenant import Tenant
from tests.factories.threads import in_thread
from tests.fakes.vendor import FakeVendor


class Held:
    """A coroutine function that does its work and keeps the result back until `release`."""

    def __init__(self, work: Callable[..., Any]) -> None:
        self._work = work
        self.is_holding, self._may_go = asyncio.Event(), asyncio.Event()

    async def __call__(self, *args: Any) -> Any:
        result = await self._work(*args)
        self.is_holding.set()
        await self._may_go.wait()
        return result

    def release(self) -> None:
        self._may_go.set()


def hold_reads(monkeypatch: pytest.MonkeyPatch) -> Held:
    database = runtime.current().caller_cache._database
    held = Held(database.read)
    monkeypatch.setattr(type(database), "read", lambda _, *args: held(*args))
    return held


async def test_a_load_that_began_before_a_revocation_lets_nobody_in(
    agent: Agent, tenant: Tenant, vendor: FakeVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await agent.call(tenant.agent_key, "fake_list")).status_code == 200
    runtime.current().store.bump_epochs([epochs.subject(tenant.client.subject)])
    # It saw the key, and takes long to say so.
    held = hold_reads(monkeypatch)
    early = asyncio.ensure_future(agent.call(tenant.agent_key, "fake_list"))
    await held.is_holding.wait()
    await in_thread(lambda: revoke_agent_key(actor=tenant.owner, client=tenant.client))
    vendor.seen.clear()
    late = asyncio.ensure_future(agent.call(tenant.agent_key, "fake_list"))
    await asyncio.sleep(0.2)  # it waits for the load that has begun
    held.release()
    assert (await late).status_code == 401
    assert (await early).status_code in (200, 401), "it was there before the revocation"
    assert (await agent.call(tenant.agent_key, "fake_list")).status_code == 401


async def test_a_change_whose_bump_was_lost_is_in_force_when_promised(
    agent: Agent, tenant: Tenant, jwt: str, caller_clock: StandingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A caller may be made of an organization that has almost reached its age: no part gets older for it."""
    begun_s = caller_clock.now_s
    max_age_s = runtime.current().caller_cache.freshness.max_age_s
    assert max_age_s == (900.0 if settings.REDIS_URL else epochs.IN_FORCE_WITHIN_S)
    monkeypatch.setattr(runtime.current().caller_cache._shared, "_spread", lambda: 0.0)

    async def is_refused(bearer: str) -> bool:
        return "isError" in (await agent.call(bearer, "fake_list")).json()["result"]

    runtime.current().store.bump_epochs([epochs.organization(tenant.organization.id), epochs.CATALOG])
    assert not await is_refused(tenant.agent_key)
    await in_thread(Credential.objects.all().delete)
    caller_clock.now_s = begun_s + max_age_s - 5.0
    assert not await is_refused(jwt), "loaded now, of what was there"
    caller_clock.now_s = begun_s + max_age_s
    assert await is_refused(jwt)
    assert await is_refused(tenant.agent_key)


async def test_recording_the_last_use_holds_no_call_up(
    agent: Agent, tenant: Tenant, jwt: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_holding, may_go, record = threading.Event(), threading.Event(), bearers.record_uses

    def held(*args: Any) -> None:
        record(*args)
        is_holding.set()
        assert may_go.wait(20)

    monkeypatch.setattr(bearers, "record_uses", held)
    monkeypatch.setattr(last_used, "GATHER_S", 0.0)
    try:
        for bearer in (tenant.agent_key, jwt):
            assert (await asyncio.wait_for(agent.call(bearer, "fake_list"), 5)).status_code == 200
        assert await asyncio.to_thread(is_holding.wait, 10)
        assert (await asyncio.wait_for(agent.call(tenant.agent_key, "fake_list"), 5)).status_code == 200
    finally:
        may_go.set()


async def test_a_database_that_does_not_answer_is_given_up(
    agent: Agent, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hot_path_database, "DB_DEADLINE_S", 0.2)
    may_go = threading.Event()
    with monkeypatch.context() as silent:
        silent.setattr(JsonStatement, "ask", lambda *_: may_go.wait(20))
        silent.setattr(loop_reader.ReadingConnection, "ask", lambda *_: None)
        started = time.monotonic()
        answer = await agent.call(tenant.agent_key, "fake_list")
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
        assert time.monotonic() - started < 5
        may_go.set()
    monkeypatch.setattr(hot_path_database, "DB_DEADLINE_S", 30.0)
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
        return msgspec.structs.replace(await admit(*args), epochs=("", "", ""))

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
    for bearer in (jwt, other_tenant.agent_key):
        # Another process loaded a catalog that says the same, and saved the organization unchanged.
        runtime.current().store.bump_epochs([epochs.organization(tenant.organization.id), epochs.CATALOG])
        latest = await cache.reload(bearer)
        assert latest.catalog is first.catalog
        assert (latest.organization is first.organization) == (bearer == jwt)
    assert len(loads) == 3
