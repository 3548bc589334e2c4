"""Two processes as far as a caller can tell: caches of their own on the same database and store.

Spec: §4.14 · D23 · docs/decisions/0052
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from django.conf import settings
from django.db.backends.utils import CursorWrapper
from msgspec.structs import replace

from credentials.access_rows import BY_ORGANIZATION
from gateway.coordination import backend, epochs
from gateway.coordination.fallback_store import FallbackStore
from gateway.coordination.polled_epoch import EVERY_S
from gateway.coordination.retry_thread import RetryThread
from gateway.coordination.store import Admission, CoordinationUnavailable
from gateway.lib.json_statement import JsonStatement
from oauth_ext.bearer import InvalidBearer
from oauth_ext.jwt import keys
from oauth_ext.models import AgentKey
from orgs.models import Organization
from proxy.caller import Caller
from proxy.caller_cache import UNCONFIRMED_AGE_S, CallerCache
from proxy.hot_path_database import HotPathDatabase
from tests.api.proxy.conftest import StandingClock
from tests.factories.tenant import Tenant, load_vendor
from tests.factories.threads import in_thread

ADDRESS = "127.0.0.1"
MOVED = "http://127.0.0.1:9/mcp"


class Process:
    """One process: its callers, on a store that all processes share."""

    def __init__(self, caller_clock: StandingClock) -> None:
        self.store = backend.current.__wrapped__()
        if isinstance(self.store, FallbackStore):
            self.store._store._monotonic = caller_clock.monotonic  # type: ignore[attr-defined]
        self.cache = CallerCache(self.store, spread=lambda: 0.0)
        self.is_store_away = False

    async def admitted(self, bearer: str) -> Caller:
        """The caller of one request, as admission finds it."""
        caller = await self.cache.get(bearer, ADDRESS)
        return await self.cache.revalidated(bearer, caller, (await self._admit(caller)).epochs)

    async def end(self) -> None:
        await self.cache.aclose()
        await self.store.aclose()
        if isinstance(self.store, FallbackStore):
            await asyncio.to_thread(self.store.stop)
            for client in (self.store._store._sync, self.store._store._probe_client):  # type: ignore[attr-defined]
                client.close()  # of threads; a process keeps them until it ends
        for threads in (self.cache._database.db_threads, self.cache._database.write_thread):
            await asyncio.to_thread(threads.shutdown)

    async def address(self, bearer: str) -> str:
        """The vendor's address in the catalog that one request uses."""
        return (await self.admitted(bearer)).catalog.by_slug["fake"].url

    async def _admit(self, caller: Caller) -> Admission:
        admission = await self.store.admit(settings.TOOL_CALLS, caller.principal.subject, caller.epoch_names)
        return replace(admission, epochs=None) if self.is_store_away else admission


@pytest.fixture(autouse=True)
def _polled_by_each_call() -> None:
    """Not here: the catalog's epoch is polled as in production."""


@pytest.fixture
async def processes(tenant: Tenant, caller_clock: StandingClock) -> AsyncIterator[list[Process]]:
    made = [Process(caller_clock), Process(caller_clock)]
    yield made
    for process in made:
        await process.end()


async def test_a_catalog_load_is_in_force_everywhere_within_a_second(
    processes: list[Process], tenant: Tenant, jwt: str, caller_clock: StandingClock
) -> None:
    before = {await each.address(bearer) for each in processes for bearer in (tenant.agent_key, jwt)}
    assert len(before) == 1
    await in_thread(lambda: load_vendor(MOVED))
    for _ in range(2):  # a call that finds the read due starts it, and the next one has its answer at the latest
        caller_clock.now_s += EVERY_S - 0.01
        after = [await each.address(bearer) for each in processes for bearer in (tenant.agent_key, jwt)]
    assert after == [MOVED] * 4


async def test_a_process_that_was_idle_uses_no_old_catalog(
    processes: list[Process], tenant: Tenant, caller_clock: StandingClock
) -> None:
    busy, idle = processes
    assert await busy.address(tenant.agent_key) == await idle.address(tenant.agent_key) != MOVED
    await in_thread(lambda: load_vendor(MOVED))
    caller_clock.now_s += 20.0
    assert await idle.address(tenant.agent_key) == MOVED, "the first call after a pause"


@pytest.mark.skipif(not settings.REDIS_URL, reason="the file of one host is read by each call")
async def test_one_call_in_half_a_second_reads_the_catalogs_epoch_for_all(
    processes: list[Process],
    tenant: Tenant,
    other_tenant: Tenant,
    caller_clock: StandingClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Sequence[str]] = []
    store = processes[0].store._store  # type: ignore[attr-defined]
    read = store.read_epochs

    async def recorded(names: Sequence[str]) -> tuple[str, ...] | None:
        asked.append(list(names))
        found: tuple[str, ...] | None = await read(names)
        return found

    bearers = [tenant.agent_key, other_tenant.agent_key] * 10
    await asyncio.gather(*map(processes[0].admitted, bearers))
    monkeypatch.setattr(store, "read_epochs", recorded)
    for _ in range(3):
        caller_clock.now_s += EVERY_S
        await asyncio.gather(*map(processes[0].admitted, bearers))
    assert asked == [[epochs.CATALOG]] * 3


async def test_a_load_and_an_admission_after_it_agree_on_the_epoch(
    processes: list[Process], tenant: Tenant, other_tenant: Tenant
) -> None:
    """A caller that is loaded under a newer epoch than the last one polled is not loaded again by its next call."""
    await processes[0].address(tenant.agent_key)
    await in_thread(lambda: load_vendor(MOVED))
    first = await processes[0].admitted(other_tenant.agent_key)
    assert await processes[0].admitted(other_tenant.agent_key) is first
    assert await processes[0].address(tenant.agent_key) == MOVED


async def test_while_the_store_is_away_a_catalog_load_is_in_force_by_age(
    processes: list[Process], tenant: Tenant, caller_clock: StandingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in processes:
        await each.address(tenant.agent_key)
        each.is_store_away = True

    async def unknown(names: Sequence[str]) -> None:
        return None

    for each in processes:
        monkeypatch.setattr(each.store, "read_epochs", unknown)
    await in_thread(lambda: load_vendor(MOVED))
    caller_clock.now_s += UNCONFIRMED_AGE_S - 0.001
    assert MOVED not in [await each.address(tenant.agent_key) for each in processes]
    caller_clock.now_s += 0.001
    assert [await each.address(tenant.agent_key) for each in processes] == [MOVED] * 2


@pytest.mark.skipif(not settings.REDIS_URL, reason="the file of one host is always there")
async def test_a_catalog_epoch_that_cannot_be_read_makes_all_unknown(
    processes: list[Process], tenant: Tenant, caller_clock: StandingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store answered an admission and went away before it was asked for the catalog."""
    process = processes[0]
    known = await process.admitted(tenant.agent_key)

    async def silent(names: Sequence[str]) -> None:
        raise CoordinationUnavailable("silent")

    monkeypatch.setattr(process.store._store, "read_epochs", silent)  # type: ignore[attr-defined]
    monkeypatch.setattr(RetryThread, "start", lambda self: None)
    caller_clock.now_s += 2.0
    caller = await process.cache.get(tenant.agent_key, ADDRESS)
    admission = await process.store.admit(settings.TOOL_CALLS, caller.principal.subject, caller.epoch_names)
    assert (admission.allowed, admission.epochs) == (True, None)
    assert await process.cache.revalidated(tenant.agent_key, caller, None) is known
    caller_clock.now_s += UNCONFIRMED_AGE_S
    assert await process.admitted(tenant.agent_key) is not known


@pytest.mark.skipif(not settings.REDIS_URL, reason="processes of one host are upgraded together")
async def test_a_revocation_by_a_process_of_the_release_before_is_in_force_at_the_next_call(
    processes: list[Process], tenant: Tenant
) -> None:
    """It bumps epochs by the names that it knows."""
    subject = tenant.client.subject
    for process in processes:
        assert (await process.admitted(tenant.agent_key)).principal.subject == subject
    await in_thread(lambda: AgentKey.objects.filter(client=tenant.client).delete())
    await bumped_before_this_release(processes[0], f"subject:{subject}")
    for process in processes:
        with pytest.raises(InvalidBearer):
            await process.admitted(tenant.agent_key)


@pytest.mark.skipif(not settings.REDIS_URL, reason="processes of one host are upgraded together")
async def test_a_change_of_an_organization_by_the_release_before_is_in_force_at_the_next_call(
    processes: list[Process], tenant: Tenant
) -> None:
    for process in processes:
        assert (await process.admitted(tenant.agent_key)).organization.name != "Renamed"
    rows = Organization.objects.filter(id=tenant.organization.id)
    await in_thread(lambda: rows.update(name="Renamed"))
    await bumped_before_this_release(processes[0], f"org:{tenant.organization.id}")
    for process in processes:
        assert (await process.admitted(tenant.agent_key)).organization.name == "Renamed"


async def bumped_before_this_release(process: Process, name: str) -> None:
    """As processes of the release before write an epoch."""
    client = process.store._store._sync  # type: ignore[attr-defined]
    await in_thread(lambda: client.set(f"{settings.COORDINATION_PREFIX}epoch:{name}", "bumped", ex=60))


async def test_processes_that_start_together_load_each_thing_once_and_nothing_before_a_call(
    tenant: Tenant, other_tenant: Tenant, jwt: str, caller_clock: StandingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight at once, and the first calls of each come together."""
    statements: list[str] = []
    execute = CursorWrapper.execute

    def recorded(self: CursorWrapper, sql: str, params: Any = None) -> Any:
        statements.append(sql)
        return execute(self, sql, params)

    asked: list[JsonStatement] = []
    read = HotPathDatabase.read

    async def recorded_read(database: HotPathDatabase, statement: JsonStatement, value: str) -> bytes | None:
        asked.append(statement)
        return await read(database, statement, value)

    monkeypatch.setattr(CursorWrapper, "execute", recorded)
    monkeypatch.setattr(HotPathDatabase, "read", recorded_read)
    keys.forget()
    started = [Process(caller_clock) for _ in range(8)]
    assert (statements, asked) == ([], [])
    bearers = [tenant.agent_key, jwt, other_tenant.agent_key] * 8
    await asyncio.gather(*(process.admitted(bearer) for process in started for bearer in bearers))

    def reads_of(table: str) -> int:
        return sum(f'FROM "{table}"' in sql and sql.startswith("SELECT") for sql in statements)

    assert reads_of("catalog_vendorrow") == len(started)
    assert asked.count(BY_ORGANIZATION) == 2 * len(started)
    assert reads_of("oauth_ext_signingkey") <= 1, "all of them are one process of the system here"
    for process in started:
        await process.end()
