"""While epochs are unknown, what callers share is loaded once a second, and nothing is believed for long.

Spec: D23 · reliability.md F2
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from django.conf import LazySettings

from credentials.models import Credential
from gateway.coordination import epochs, outbox
from gateway.coordination.models import PendingBump
from gateway.coordination.store import CoordinationUnavailable
from oauth_ext.services.agent_keys import revoke_agent_key
from orgs.services.organizations import create_organization
from proxy import outbox_relay, runtime, shared_rows
from proxy.caller import Caller
from proxy.caller_cache import UNCONFIRMED_AGE_S, UNCONFIRMED_SPREAD_S, CallerCache
from proxy.hot_path_database import DatabaseUnavailable
from proxy.outbox_relay import relay_if_leader
from tests.api.proxy.conftest import Agent, StandingClock, access_token
from tests.factories.tenant import Tenant, make_tenant
from tests.factories.threads import in_thread

ADDRESS = "127.0.0.1"


@pytest.fixture
async def without_store(agent: Agent, caller_clock: StandingClock, monkeypatch: pytest.MonkeyPatch) -> CallerCache:
    """The snapshots of a process whose store is away."""

    async def unknown(names: Sequence[str]) -> None:
        return None

    store = runtime.current().store
    monkeypatch.setattr(store, "read_epochs", unknown)
    made = runtime.current().caller_cache
    monkeypatch.setattr(made, "_spread", lambda: 0.0)
    return made


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[object]]:
    """The number of loads of each organization, and of "catalog"."""
    seen: Counter[object] = Counter()

    def recording(name: Callable[..., object], work: Callable[..., Any]) -> Callable[..., Any]:
        def recorded(*args: object) -> Any:
            seen[name(*args)] += 1
            return work(*args)

        return recorded

    monkeypatch.setattr(shared_rows, "organization_in", recording(lambda key, _: key, shared_rows.organization_in))
    registry = shared_rows.catalog_registry
    monkeypatch.setattr(registry, "load", recording(lambda: "catalog", registry.load))
    return seen


async def test_callers_share_an_organization_and_the_catalog_for_a_moment(
    without_store: CallerCache,
    caller_clock: StandingClock,
    tenant: Tenant,
    other_tenant: Tenant,
    jwt: str,
    loads: Counter[object],
) -> None:
    more = [await in_thread(lambda: access_token(tenant)) for _ in range(6)]
    bearers = [tenant.agent_key, jwt, *more]
    callers = await asyncio.gather(
        *(without_store.get(bearer, ADDRESS) for bearer in [*bearers, other_tenant.agent_key])
    )
    mine, other = tenant.organization.id, other_tenant.organization.id
    assert loads == {mine: 1, other: 1, "catalog": 1}
    assert len({id(caller.organization) for caller in callers}) == 2
    caller_clock.now_s += shared_rows.UNCONFIRMED_AGE_S
    await asyncio.gather(*(without_store.reload(bearer) for bearer in bearers))
    assert loads == {mine: 1, other: 1, "catalog": 1}
    caller_clock.now_s += 0.001
    await asyncio.gather(*(without_store.reload(bearer) for bearer in bearers))
    assert loads == {mine: 2, other: 1, "catalog": 2}


@pytest.mark.parametrize("spread", [0.0, 0.5, 1.0])
async def test_nothing_is_believed_for_five_seconds_counted_from_its_oldest_part(
    without_store: CallerCache,
    caller_clock: StandingClock,
    tenant: Tenant,
    jwt: str,
    spread: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(without_store, "_spread", lambda: spread)
    await without_store.get(tenant.agent_key, ADDRESS)
    caller_clock.now_s += shared_rows.UNCONFIRMED_AGE_S
    second = await without_store.get(jwt, ADDRESS)
    assert second.as_of_s == second.own.loaded_at_s - shared_rows.UNCONFIRMED_AGE_S
    ends_at_s = second.as_of_s + UNCONFIRMED_AGE_S - spread * UNCONFIRMED_SPREAD_S
    assert ends_at_s - second.as_of_s < 5.0
    caller_clock.now_s = ends_at_s - 0.001
    assert await without_store.get(jwt, ADDRESS) is second
    assert await without_store.revalidated(jwt, second, None) is second
    caller_clock.now_s = ends_at_s
    assert await without_store.revalidated(jwt, second, None) is not second


async def test_a_revocation_is_in_force_by_age(
    agent: Agent,
    without_store: CallerCache,
    caller_clock: StandingClock,
    tenant: Tenant,
    jwt: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def local(*args: Any) -> Any:
        return msgspec.structs.replace(await admit(*args), epochs=None)

    store = runtime.current().store
    admit = store.admit
    monkeypatch.setattr(store, "admit", local)
    assert (await agent.call(tenant.agent_key, "fake_list")).status_code == 200
    await in_thread(lambda: revoke_agent_key(actor=tenant.owner, client=tenant.client))
    await in_thread(Credential.objects.all().delete)
    caller_clock.now_s += UNCONFIRMED_AGE_S
    assert (await agent.call(tenant.agent_key, "fake_list")).status_code == 401
    result = (await agent.call(jwt, "fake_list")).json()["result"]
    assert result["isError"]
    assert "not connected" in result["content"][0]["text"]


# --- rights older than an epoch that was seen -------------------------------------------------------------------------


async def test_a_call_never_acts_under_rights_older_than_an_epoch_it_has_seen(
    agent: Agent, caller_clock: StandingClock, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = runtime.current().caller_cache
    old = await cache.get(tenant.agent_key, ADDRESS)
    seen = ("after the change", *(old.epochs or ())[1:])

    async def joined_too_early(*args: object) -> Caller:
        return old

    caller_clock.now_s += 1
    with monkeypatch.context() as patch:
        patch.setattr(cache, "reload", joined_too_early)
        with pytest.raises(DatabaseUnavailable, match="older than an epoch"):
            await cache.revalidated(tenant.agent_key, old, seen)
    new = await cache.revalidated(tenant.agent_key, old, seen)
    assert new.own.loaded_at_s > old.own.loaded_at_s


async def test_what_was_shared_before_an_epoch_was_seen_is_not_used_after(
    without_store: CallerCache, caller_clock: StandingClock, tenant: Tenant, jwt: str, loads: Counter[object]
) -> None:
    """The store said that something changed, and went away before the rows were read."""
    old = await without_store.get(tenant.agent_key, ADDRESS)
    caller_clock.now_s += shared_rows.UNCONFIRMED_AGE_S / 2
    new = await without_store.revalidated(tenant.agent_key, old, ("changed", "changed", "changed"))
    assert new.as_of_s == caller_clock.now_s
    assert loads[tenant.organization.id] == loads["catalog"] == 2


# --- what is kept -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_reloaded", [True, False])
async def test_who_was_used_longest_ago_is_forgotten_first(
    agent: Agent, tenant: Tenant, other_tenant: Tenant, jwt: str, is_reloaded: bool, settings: LazySettings
) -> None:
    settings.CACHED_CALLERS = 2
    cache = runtime.current().caller_cache
    first = await cache.get(tenant.agent_key, ADDRESS)
    await cache.get(jwt, ADDRESS)
    if is_reloaded:
        first = await cache.reload(tenant.agent_key)
    else:
        assert await cache.get(tenant.agent_key, ADDRESS) is first
    await cache.get(other_tenant.agent_key, ADDRESS)
    assert len(cache._callers) == 2
    assert await cache.get(tenant.agent_key, ADDRESS) is first


async def test_the_organization_used_longest_ago_is_forgotten_first(
    agent: Agent, tenant: Tenant, other_tenant: Tenant, loads: Counter[object], settings: LazySettings
) -> None:
    settings.CACHED_ORGANIZATIONS = 2
    made = await in_thread(lambda: create_organization(actor=tenant.owner, name="Third"))
    third = await in_thread(lambda: make_tenant(made, tenant.owner, name="third bot"))
    cache = CallerCache(runtime.current().store)
    try:
        await cache.get(tenant.agent_key, ADDRESS)
        await cache.get(other_tenant.agent_key, ADDRESS)
        # Its caller is known: the use of a caller is a use of its organization.
        await cache.get(tenant.agent_key, ADDRESS)
        await cache.get(third.agent_key, ADDRESS)
        kept = [epochs.organization(each.organization.id) for each in (tenant, third)]
        assert list(cache._shared._organizations) == kept
        assert loads == {tenant.organization.id: 1, other_tenant.organization.id: 1, made.id: 1, "catalog": 1}
    finally:
        await cache.aclose()


# --- the relay --------------------------------------------------------------------------------------------------------


async def test_one_process_at_a_time_relays_for_all(
    agent: Agent, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another host committed a bump that it could not send: a process that reaches the store sends it."""
    store, cache = runtime.current().store, runtime.current().caller_cache
    name = f"subject:{tenant.client.subject}"
    monkeypatch.setattr(outbox, "LEADER", replace(outbox.LEADER, window_s=3600))
    before = await store.begin_epochs([name])
    await in_thread(lambda: outbox.put([name, name]))
    assert await relay_if_leader(store, cache) == 2
    after = await store.read_epochs([name])
    assert before is not None
    assert after is not None
    assert after[0] not in {"", before[0]}
    assert not await in_thread(PendingBump.objects.exists)
    await in_thread(lambda: outbox.put([name]))
    assert await relay_if_leader(store, cache) == 0, "another one leads"


async def test_a_fault_of_ours_does_not_end_the_relay(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = 0
    has_gone_on = asyncio.Event()

    async def faulty(*_: object) -> int:
        nonlocal rounds
        rounds += 1
        if rounds == 1:
            raise RuntimeError
        has_gone_on.set()
        return 0

    monkeypatch.setattr(outbox_relay, "relay_if_leader", faulty)
    monkeypatch.setattr(outbox_relay, "EVERY_S", 0.0)
    relay = asyncio.ensure_future(outbox_relay.keep_relaying(None, None))  # type: ignore[arg-type]
    try:
        async with asyncio.timeout(60):
            await has_gone_on.wait()
    finally:
        relay.cancel()
        await asyncio.wait([relay])


async def test_a_process_without_the_store_relays_nothing(
    agent: Agent, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, cache = runtime.current().store, runtime.current().caller_cache
    await in_thread(lambda: outbox.put(["subject:a"]))
    admit = store.admit

    async def local(*args: Any) -> Any:
        return msgspec.structs.replace(await admit(*args), epochs=None)

    async def is_locked(*args: Any) -> Any:
        raise CoordinationUnavailable("locked")

    for answer in (local, is_locked):
        monkeypatch.setattr(store, "admit", answer)
        assert await relay_if_leader(store, cache) == 0
    assert await in_thread(PendingBump.objects.exists)
