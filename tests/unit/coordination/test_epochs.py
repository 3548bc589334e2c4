"""A bump that the store does not take is never lost, and makes nothing fail that was committed."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from django.conf import LazySettings
from django.db import transaction

from gateway.coordination import backend, epochs, outbox, sqlite_store
from gateway.coordination.models import PendingBump
from gateway.coordination.retry_thread import RetryThread
from gateway.coordination.store import CoordinationUnavailable
from gateway.coordination.tasks import relay_outbox
from tests.factories.threads import in_thread

ANNA, BO = epochs.subject("anna"), epochs.subject("bo")


class Store:
    """Takes bumps while `up`."""

    def __init__(self) -> None:
        self.up = True
        self.bumped: list[str] = []

    def bump_epochs(self, names: Sequence[str]) -> None:
        if not self.up:
            raise CoordinationUnavailable("gone")
        self.bumped.extend(names)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    made = Store()
    monkeypatch.setattr(backend, "current", lambda: made)
    monkeypatch.setattr(RetryThread, "start", lambda self: None)
    return made


@pytest.fixture
def with_redis(store: Store, settings: LazySettings) -> Store:
    settings.REDIS_URL = "redis://127.0.0.1:9/0"
    return store


@pytest.fixture
def on_one_host(store: Store, settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> Store:
    settings.REDIS_URL = ""
    monkeypatch.setattr(epochs, "retried_bumps", epochs.RetriedBumps(backend.current))
    return store


def pending() -> list[str]:
    return list(PendingBump.objects.values_list("name", flat=True))


def change(*names: str, then: Callable[[], object] = lambda: None) -> None:
    """A change that bumps, with something else to do after its commit."""
    with transaction.atomic():
        epochs.bump_on_commit(*names)
        transaction.on_commit(then)


@pytest.mark.django_db(transaction=True)
def test_a_bump_that_was_taken_leaves_no_row(with_redis: Store) -> None:
    change(ANNA, BO)
    assert (with_redis.bumped, pending()) == ([ANNA, BO], [])
    epochs.bump_on_commit(ANNA)
    assert (with_redis.bumped, pending()) == ([ANNA, BO, ANNA], []), "outside a transaction"


@pytest.mark.django_db(transaction=True)
def test_the_row_commits_with_the_change_and_not_without(with_redis: Store) -> None:
    with transaction.atomic():
        epochs.bump_on_commit(ANNA)
        assert (with_redis.bumped, pending()) == ([], [ANNA])
        transaction.set_rollback(True)
    assert (with_redis.bumped, pending()) == ([], [])


@pytest.mark.django_db(transaction=True)
def test_a_bump_that_was_missed_stays_until_somebody_relays_it(with_redis: Store) -> None:
    with_redis.up, done = False, []
    change(ANNA, BO, then=lambda: done.append("later hook"))
    assert (pending(), done) == ([ANNA, BO], ["later hook"])
    with pytest.raises(CoordinationUnavailable):
        outbox.relay(with_redis)  # type: ignore[arg-type]
    assert pending() == [ANNA, BO]
    with_redis.up = True
    assert outbox.relay(with_redis) == 2  # type: ignore[arg-type]
    assert (with_redis.bumped, pending()) == ([ANNA, BO], [])
    assert outbox.relay(with_redis) == 0  # type: ignore[arg-type]


@pytest.mark.django_db(transaction=True)
def test_a_relay_sends_any_number_and_each_name_once_in_a_round(
    with_redis: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "BATCH_ROWS", 3)
    with_redis.up = False
    change(*[ANNA] * 3, *(f"org:{number}" for number in range(7)))
    with_redis.up = True
    assert outbox.relay(with_redis) == 10  # type: ignore[arg-type]
    assert with_redis.bumped == [ANNA, *(f"org:{number}" for number in range(7))]
    assert pending() == []


@pytest.mark.django_db(transaction=True)
def test_the_schedule_relays_and_leaves_rows_while_the_store_is_away(with_redis: Store) -> None:
    with_redis.up = False
    change(ANNA)
    relay_outbox()
    assert pending() == [ANNA]
    with_redis.up = True
    relay_outbox()
    assert (with_redis.bumped, pending()) == ([ANNA], [])


@pytest.mark.django_db(transaction=True)
def test_a_command_learns_whether_all_was_relayed(with_redis: Store) -> None:
    assert outbox.relayed_in_time(0.0)
    with_redis.up = False
    change(ANNA)
    assert not outbox.relayed_in_time(0.0)
    with_redis.up = True
    outbox.relay(with_redis)  # type: ignore[arg-type]
    assert outbox.relayed_in_time(0.0)


@pytest.mark.django_db(transaction=True)
def test_a_locked_file_makes_no_change_fail_and_skips_no_hook(on_one_host: Store) -> None:
    on_one_host.up, done = False, []
    change(ANNA, then=lambda: done.append("later hook"))
    change(BO)
    assert (on_one_host.bumped, pending(), done) == ([], [], ["later hook"])
    assert not epochs.retried_bumps.send()
    on_one_host.up = True
    assert epochs.retried_bumps.send()
    assert on_one_host.bumped == [ANNA, BO]
    assert epochs.retried_bumps.send()
    assert on_one_host.bumped == [ANNA, BO], "once"


@pytest.mark.django_db(transaction=True)
def test_a_fault_of_ours_after_the_commit_skips_no_hook_either(
    on_one_host: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    monkeypatch.setattr(backend, "current", lambda: 1 / 0)
    change(ANNA, then=lambda: done.append("later hook"))
    assert done == ["later hook"]


@pytest.mark.django_db(transaction=True)
async def test_a_file_that_another_process_holds_takes_the_bump_afterwards(
    settings: LazySettings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings.REDIS_URL = ""
    monkeypatch.setattr(sqlite_store, "_LOCK_TIMEOUT_S", 0.05)
    store = sqlite_store.SQLiteStore(tmp_path / "coordination.sqlite3", backend.new_value)
    monkeypatch.setattr(backend, "current", lambda: store)
    monkeypatch.setattr(epochs, "retried_bumps", epochs.RetriedBumps(lambda: store))
    before = await store.begin_epochs([ANNA, BO])
    assert before is not None
    with closing(sqlite3.connect(tmp_path / "coordination.sqlite3", isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        await in_thread(lambda: change(ANNA))
        holder.execute("ROLLBACK")
    async with asyncio.timeout(20):
        while (after := await store.read_epochs([ANNA, BO])) == before:
            await asyncio.sleep(0.01)
    assert after is not None
    assert after[0] not in {"", before[0]}
    assert after[1] == before[1]
    await store.aclose()
