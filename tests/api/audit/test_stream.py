"""The stream of final rows: each exactly once, in an order that no late commit disturbs."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.db import connection, connections, transaction
from msgspec.structs import asdict, replace

from audit import rate_limited_rows, stream
from audit.actor import system
from audit.admin_log import record_admin
from audit.audit_connection import AuditConnection, open_audit_connection
from audit.call_record import CallRecord
from audit.event_types import EventType
from audit.models import AdminAuditEntry, RequestAuditEntry, StreamCursor, StreamEra
from audit.stream import FINAL_AFTER_S, Log, Place, finish_stale_rows, place_of, take
from gateway.catalog.vendor import MAX_TIMEOUT_S
from gateway.lib import clock, ids
from tests.api.audit.rows import NOON, ORG, OTHER_ORG, make_record
from tests.factories.until import until_true

pytestmark = pytest.mark.django_db(transaction=True)
LATE = NOON + timedelta(seconds=FINAL_AFTER_S, milliseconds=1)


@pytest.fixture
def log() -> Iterator[AuditConnection]:
    opened = open_audit_connection()
    yield opened
    opened.close()


def taken(name: str = "one", log: Log = Log.REQUESTS, limit: int = 100) -> list[str]:
    """The request ids of the next batch."""
    with transaction.atomic():
        batch = take(name, log, limit)
        assert batch is not None
        return [row.request_id for row in batch.rows]


def followed(expected: int, name: str = "one", log: Log = Log.REQUESTS) -> list[str]:
    """Batches until so many rows have come: on a busy server, transactions of other databases are open for a while."""
    seen: list[str] = []

    def has_seen_all() -> bool:
        seen.extend(taken(name, log, limit=3))
        return len(seen) >= expected

    until_true(has_seen_all)
    return seen


def calls(*names: str, **changes: object) -> list[CallRecord]:
    return [make_record(request_id=name, org_id=(ORG, OTHER_ORG)[n % 2], **changes) for n, name in enumerate(names)]


def test_final_rows_come_once_and_in_the_order_of_their_commits(log: AuditConnection) -> None:
    log.commit(calls("later", timestamp=NOON + timedelta(hours=1)))
    log.commit(calls("earlier-a", "earlier-b"))
    assert followed(3) == ["later", "earlier-a", "earlier-b"]
    assert taken() == []
    assert followed(3, "another consumer") == ["later", "earlier-a", "earlier-b"]


def test_an_intent_is_not_handed_out_before_its_outcome(log: AuditConnection) -> None:
    (begun,) = calls("slow", status="unknown")
    log.commit([begun])
    log.commit(calls("quick"))
    assert followed(1) == ["quick"]
    log.commit([replace(begun, status="success", duration_ms=7)])
    assert followed(1) == ["slow"]
    assert taken() == []


def test_an_intent_without_outcome_becomes_final_and_stays_so(log: AuditConnection) -> None:
    (begun,) = calls("died", status="unknown")
    log.commit([begun])
    assert finish_stale_rows(LATE - timedelta(milliseconds=2)) == 0
    assert (finish_stale_rows(LATE), finish_stale_rows(LATE)) == (1, 0)
    assert followed(1) == ["died"]
    log.commit([replace(begun, status="success")])
    assert RequestAuditEntry.objects.get().status == "unknown", "it has been handed out"
    assert taken() == []


def test_the_bound_is_longer_than_any_call() -> None:
    # Its own time, its place in line, finding its tool, and the writer's deadline.
    assert FINAL_AFTER_S > MAX_TIMEOUT_S + 60


def test_a_count_of_refused_calls_is_handed_out_when_its_minute_is_long_over() -> None:
    record = make_record(status="denied", error_code="rate_limited", request_id="first")
    rate_limited_rows.upsert_part(record, "process-a", 3)
    rate_limited_rows.upsert_part(record, "process-b", 2)
    assert taken() == []
    assert finish_stale_rows(LATE) == 1
    assert followed(1) == ["first"]
    assert RequestAuditEntry.objects.get().count == 5


def test_what_comes_too_late_for_a_final_count_is_counted_once_in_another_row() -> None:
    record = make_record(status="denied", error_code="rate_limited", request_id="first")
    rate_limited_rows.upsert_part(record, "a", 3)
    assert finish_stale_rows(LATE) == 1
    rate_limited_rows.upsert_part(record, "a", 3)  # the same again, after a lost response
    for _ in range(2):
        rate_limited_rows.upsert_part(record, "a", 8)
        rate_limited_rows.upsert_part(record, "b", 1)
    assert sorted(RequestAuditEntry.objects.values_list("count", flat=True)) == [3, 6]
    assert finish_stale_rows(LATE) == 1
    rate_limited_rows.upsert_part(record, "a", 9)
    assert sorted(RequestAuditEntry.objects.values_list("count", flat=True)) == [1, 3, 6]
    assert {row.timestamp for row in RequestAuditEntry.objects.all()} == {NOON}


def admin_event(name: str, org_id: uuid.UUID = ORG) -> AdminAuditEntry:
    entry = record_admin(EventType.TEAM_CREATED, org_id=org_id, actor=system("test"))
    AdminAuditEntry.objects.filter(id=entry.id).update(request_id=name)
    return entry


def test_admin_rows_have_a_stream_of_their_own(log: AuditConnection) -> None:
    with transaction.atomic():
        admin_event("first")
        admin_event("second", OTHER_ORG)
    with transaction.atomic():
        admin_event("third")
        transaction.set_rollback(True)
    log.commit(calls("a call"))
    assert followed(2, log=Log.ADMIN) == ["first", "second"]
    assert followed(1) == ["a call"]
    entry = AdminAuditEntry.objects.earliest("id")
    assert ids.time_of(entry.id) == entry.timestamp


def test_an_admin_row_without_a_position_becomes_final(log: AuditConnection) -> None:
    """The release before writes such rows, and this one in a cluster whose era has not begun."""
    with transaction.atomic():
        entry = admin_event("without a position")
        AdminAuditEntry.objects.filter(id=entry.id).update(position=None)
    assert taken(log=Log.ADMIN) == []
    assert finish_stale_rows(entry.timestamp + timedelta(seconds=FINAL_AFTER_S, milliseconds=1)) == 1
    assert followed(1, log=Log.ADMIN) == ["without a position"]


def test_positions_rise_also_when_retention_has_removed_the_highest(log: AuditConnection) -> None:
    log.commit(calls("a", "b"))
    assert followed(2) == ["a", "b"]
    RequestAuditEntry.objects.all().delete()
    log.commit(calls("c"))
    assert followed(1) == ["c"]


def test_many_rows_of_one_position_are_walked_along_the_index(log: AuditConnection) -> None:
    """As an upgrade leaves them: each batch begins where the last one ended, and reads no row before it."""
    records = calls(*(f"r-{number}" for number in range(2_000)))
    for start in range(0, len(records), 500):
        log.commit(records[start : start + 500])
    RequestAuditEntry.objects.update(position=1)
    middle = sorted(record.id for record in records)[1_000]
    rows = stream.rows_after(Place(1, middle), Log.REQUESTS)[:10]
    plan = rows.explain(analyze=True) if connection.vendor == "postgresql" else rows.explain()
    assert "request_log_stream" in plan or "position_id_idx" in plan, plan
    if connection.vendor == "postgresql":
        assert "Rows Removed by Filter" not in plan.partition("Append")[2], plan
    else:
        assert "(position>? AND id>?)" in plan or "(position,id)>(?,?)" in plan, plan
    assert len(rows) == 10


def test_a_cursor_moves_with_its_transaction_alone(log: AuditConnection) -> None:
    log.commit(calls("a", "b"))
    assert followed(2, "other") == ["a", "b"]
    with transaction.atomic():
        batch = take("one", Log.REQUESTS, 1)
        assert batch is not None
        assert len(batch.rows) == 1
        transaction.set_rollback(True)
    assert place_of("one", Log.REQUESTS) == Place(0, ids.NO_ID)
    assert followed(2) == ["a", "b"]
    assert place_of("one", Log.REQUESTS) == place_of("other", Log.REQUESTS)


def test_rows_are_taken_in_a_transaction_only() -> None:
    with pytest.raises(RuntimeError):
        take("one", Log.REQUESTS, 1)


def test_the_cursor_says_when_it_had_everything(log: AuditConnection) -> None:
    log.commit(calls("a", "b"))
    before = clock.now()
    assert followed(2) == ["a", "b"]
    assert taken() == []
    reached_at = StreamCursor.objects.get().reached_at
    assert reached_at is not None
    assert before <= reached_at <= clock.now()


@contextmanager
def in_another_session(work: Callable[[], object]) -> Iterator[threading.Event]:
    """`work` has been done in a transaction of another session, which commits when the event is set."""
    is_done, may_commit = threading.Event(), threading.Event()

    def run() -> None:
        try:
            with transaction.atomic():
                work()
                is_done.set()
                may_commit.wait(60)
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert is_done.wait(60)
        yield may_commit
    finally:
        may_commit.set()
        thread.join(60)


postgresql_only = pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has one writer at a time")


@postgresql_only
def test_a_slow_commit_is_not_overtaken(log: AuditConnection) -> None:
    with in_another_session(lambda: admin_event("slow")) as may_commit:
        with transaction.atomic():
            admin_event("quick")
        assert taken(log=Log.ADMIN) == [], "the slow one has the lower position"
        may_commit.set()
    assert followed(2, log=Log.ADMIN) == ["slow", "quick"]


@postgresql_only
def test_two_readers_at_once_share_no_row(log: AuditConnection) -> None:
    log.commit(calls("a", "b", "c"))
    assert followed(3, "other") == ["a", "b", "c"]
    assert taken(limit=1) == ["a"]
    with in_another_session(lambda: take("one", Log.REQUESTS, 1)), transaction.atomic():
        assert take("one", Log.REQUESTS, 1) is None
    assert followed(1) == ["c"]


@postgresql_only
def test_a_cursor_survives_a_restore_into_a_cluster_with_lower_transaction_ids(log: AuditConnection) -> None:
    """A copy brings rows and cursors of positions that its own transactions reach in years."""
    far = 10**15
    log.commit(calls("before"))
    RequestAuditEntry.objects.update(position=far)
    StreamCursor.objects.create(name="one", log=Log.REQUESTS, position=far, row_id=ids.NO_ID)
    StreamEra.objects.update(identity="the cluster of the copy's source")
    with transaction.atomic():
        admin_event("without an era")
    restored = open_audit_connection()
    try:
        restored.commit(calls("after"))
    finally:
        restored.close()
    assert followed(2) == ["before", "after"]
    assert finish_stale_rows(clock.now() + timedelta(seconds=FINAL_AFTER_S + 1)) == 1
    assert len(followed(1, log=Log.ADMIN)) == 1
    assert StreamEra.objects.count() == 2
    assert StreamEra.objects.latest("start").start == far


def test_the_row_of_an_intent_is_the_row_of_its_outcome(log: AuditConnection) -> None:
    (begun,) = calls("one", status="unknown")
    ended = replace(begun, status="error", error_code="vendor_timeout")
    log.commit([begun])
    log.commit([ended])
    log.commit([ended])
    assert followed(1) == ["one"]
    stored = RequestAuditEntry.objects.values(*asdict(ended)).get()
    assert stored == asdict(ended)
