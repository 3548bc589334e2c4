"""Calls beyond the hourly limit: one row for each subject, organization and minute, with their number. Spec: D146"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import DatabaseError

from audit import rate_limited_rows as rows
from audit.call_record import CallRecord
from audit.models import RequestAuditEntry
from gateway.coordination.rules import Rule
from proxy import runtime
from proxy.caller_cache import CallerCache
from proxy.hot_path_database import DatabaseUnavailable
from proxy.rate_limited_calls import RateLimitedCalls
from tests.api.audit.rows import ORG, OTHER_ORG, make_record
from tests.api.proxy.conftest import Agent
from tests.factories.tenant import Tenant
from tests.factories.threads import in_thread

NOON = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)


class Clock:
    """Stands still until somebody moves it."""

    def __init__(self) -> None:
        self.now = NOON + timedelta(seconds=30)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def new_counter(transactional_db: None, clock: Clock) -> AsyncIterator[Callable[[], RateLimitedCalls]]:
    """Each counter is what one process has."""
    cache = CallerCache(runtime.backend.current())
    made: list[RateLimitedCalls] = []

    def new() -> RateLimitedCalls:
        made.append(RateLimitedCalls(cache, now=clock))
        return made[-1]

    yield new
    for counter in made:
        await counter.aclose()
    await cache.aclose()


async def note(counter: RateLimitedCalls, org_id: uuid.UUID = ORG, subject: str = "user-1") -> None:
    def first_row(row_id: uuid.UUID, minute: datetime) -> CallRecord:
        facts = {"status": "denied", "error_code": "rate_limited", "timestamp": minute}
        return make_record(id=row_id, org_id=org_id, user_id=subject, **facts)

    await counter.record(org_id, subject, first_row)


async def counts() -> dict[tuple[uuid.UUID, str, datetime], int]:
    found = await in_thread(lambda: list(RequestAuditEntry.objects.all()))
    counted = {(row.org_id, row.user_id, row.timestamp): row.count for row in found}
    assert len(counted) == len(found)
    return counted


async def test_one_row_for_each_subject_organization_and_minute(
    new_counter: Callable[[], RateLimitedCalls], clock: Clock
) -> None:
    first, second = new_counter(), new_counter()
    for counter in (first, second, first):
        await note(counter)
        await note(counter, org_id=OTHER_ORG)
        await note(counter, subject="user-2")
    clock.now += timedelta(minutes=1)
    await note(first)
    for counter in (first, second):
        await counter.flush()
    assert await counts() == {
        (ORG, "user-1", NOON): 3,
        (OTHER_ORG, "user-1", NOON): 3,
        (ORG, "user-2", NOON): 3,
        (ORG, "user-1", NOON + timedelta(minutes=1)): 1,
    }


async def test_only_the_first_call_of_a_minute_waits_for_the_database(
    new_counter: Callable[[], RateLimitedCalls], monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[int] = []
    upsert_part = rows.upsert_part

    def counting(record: CallRecord, part: str, calls: int) -> None:
        written.append(calls)
        upsert_part(record, part, calls)

    monkeypatch.setattr("proxy.rate_limited_calls.FLUSH_EVERY_S", 3_600.0)
    monkeypatch.setattr(rows, "upsert_part", counting)
    counter = new_counter()
    await asyncio.gather(*(note(counter) for _ in range(500)))
    assert written == [1]
    await counter.flush()
    assert written == [1, 500]
    assert await counts() == {(ORG, "user-1", NOON): 500}


async def test_closing_brings_the_counts_to_their_rows(new_counter: Callable[[], RateLimitedCalls]) -> None:
    counter = new_counter()
    for _ in range(7):
        await note(counter)
    await counter.aclose()
    assert await counts() == {(ORG, "user-1", NOON): 7}


async def test_a_count_that_is_said_again_counts_once(transactional_db: None) -> None:
    """The answer to a statement may be lost after it took effect."""
    record = make_record(status="denied")

    def said_again() -> None:
        for part, calls in (("a", 1), ("b", 1), ("b", 5), ("a", 3), ("b", 5), ("a", 3)):
            rows.upsert_part(record, part, calls)

    await in_thread(said_again)
    assert list((await counts()).values()) == [8]


async def test_a_minute_is_marked_when_its_row_is_durable(
    new_counter: Callable[[], RateLimitedCalls], monkeypatch: pytest.MonkeyPatch
) -> None:
    counter = new_counter()

    def away(record: CallRecord, part: str, calls: int) -> None:
        raise DatabaseError

    with monkeypatch.context() as patch:
        patch.setattr(rows, "upsert_part", away)
        refused = await asyncio.gather(note(counter), note(counter), return_exceptions=True)
    assert [type(each) for each in refused] == [DatabaseUnavailable] * 2
    assert await counts() == {}
    await note(counter)
    await note(counter)
    await counter.flush()
    assert await counts() == {(ORG, "user-1", NOON): 2}


async def test_a_count_that_could_not_be_kept_is_kept_later(
    new_counter: Callable[[], RateLimitedCalls], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.rate_limited_calls.FLUSH_EVERY_S", 3_600.0)
    counter = new_counter()
    await note(counter)
    await note(counter)

    def away(record: CallRecord, part: str, calls: int) -> None:
        raise DatabaseError

    with monkeypatch.context() as patch:
        patch.setattr(rows, "upsert_part", away)
        with pytest.raises(DatabaseUnavailable):
            await counter.flush()
    await counter.flush()
    assert await counts() == {(ORG, "user-1", NOON): 2}


async def test_minutes_that_are_over_are_forgotten(new_counter: Callable[[], RateLimitedCalls], clock: Clock) -> None:
    counter = new_counter()
    await note(counter)
    clock.now += timedelta(minutes=1)
    await note(counter)
    await counter.flush()
    assert len(counter._minutes) == 1


async def test_calls_by_every_route_are_in_one_row(
    agent: Agent, tenant: Tenant, other_tenant: Tenant, jwt: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime.current().rate_limited, "_now", Clock())
    settings.TOOL_CALLS = Rule("tools", limit=1, window_s=3600)
    for key in (tenant.agent_key, other_tenant.agent_key):
        assert (await agent.call(key, "fake_list")).status_code == 200
    for _ in range(3):
        assert (await agent.call(tenant.agent_key, "fake_list")).status_code == 429
        assert (await agent.cli(jwt, "list")).status_code == 429
    assert (await agent.call(other_tenant.agent_key, "fake_list")).status_code == 429
    await runtime.current().rate_limited.flush()
    found = await in_thread(lambda: list(RequestAuditEntry.objects.filter(error_code="rate_limited")))
    assert {(row.org_id, row.user_id, row.count) for row in found} == {
        (tenant.organization.id, tenant.client.subject, 6),
        (other_tenant.organization.id, other_tenant.client.subject, 1),
    }
    assert {(row.status, row.request_id != "", row.timestamp) for row in found} == {("denied", True, NOON)}


async def test_a_process_that_stops_leaves_the_whole_count(agent: Agent, tenant: Tenant, settings: Any) -> None:
    settings.TOOL_CALLS = Rule("tools", limit=1, window_s=3600)
    runtime.current().rate_limited._now = Clock()
    assert (await agent.call(tenant.agent_key, "fake_list")).status_code == 200
    for _ in range(4):
        assert (await agent.call(tenant.agent_key, "fake_list")).status_code == 429
    await runtime.stop()
    found = await in_thread(lambda: list(RequestAuditEntry.objects.filter(error_code="rate_limited")))
    assert [row.count for row in found] == [4]
