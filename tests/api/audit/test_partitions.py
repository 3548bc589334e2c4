"""Partitions of the request log on PostgreSQL: made ahead, never missed, dropped beside the calls."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.core.management import call_command
from django.db import OperationalError, connection, connections, transaction

from audit import partitions
from audit.models import RequestAuditEntry
from audit.partitions import Partition, month_of
from audit.retention import Pruning, prune
from audit.tasks import make_partitions
from gateway.lib import clock
from tests.api.audit.rows import NOON, ORG, OTHER_ORG, add_row
from tests.factories.until import until_true

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite keeps one table"),
]
FAR = datetime(2090, 1, 15, tzinfo=UTC)


def table_of(row_id: uuid.UUID) -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT tableoid::regclass::text FROM audit_requestauditentry WHERE id = %s", [row_id])
        return str(cursor.fetchone()[0])


@pytest.mark.parametrize(
    ("moment", "later", "expected"),
    [
        (datetime(2026, 11, 23, 5, tzinfo=UTC), 0, datetime(2026, 11, 1, tzinfo=UTC)),
        (datetime(2026, 11, 23, 5, tzinfo=UTC), 2, datetime(2027, 1, 1, tzinfo=UTC)),
        (datetime(2026, 12, 31, 23, 59, tzinfo=UTC), 1, datetime(2027, 1, 1, tzinfo=UTC)),
    ],
)
def test_months(moment: datetime, later: int, expected: datetime) -> None:
    assert month_of(moment, later) == expected


def test_a_new_installation_has_partitions_ahead_without_a_gap() -> None:
    found = partitions.partitions()
    assert found[0].start is None
    assert [each.start for each in found[1:]] == [each.end for each in found[:-1]]
    assert found[-1].end >= month_of(clock.now(), partitions.MONTHS_AHEAD)


def test_months_are_made_once() -> None:
    made = partitions.make_ahead(FAR, months=2)
    assert made == [f"audit_requestauditentry_2090_0{month}" for month in (1, 2, 3)]
    assert partitions.make_ahead(FAR, months=2) == []
    assert partitions.partitions()[-1] == Partition(
        made[-1], datetime(2090, 3, 1, tzinfo=UTC), datetime(2090, 4, 1, tzinfo=UTC)
    )
    rows = {add_row(timestamp=FAR + timedelta(days=20 * n), org_id=(ORG, OTHER_ORG)[n % 2]).id: n for n in range(3)}
    assert [table_of(row_id) for row_id in rows] == [made[0], made[1], made[1]]


def test_a_row_without_a_partition_is_kept_and_moves_when_it_has_one() -> None:
    row, other = add_row(timestamp=FAR), add_row(timestamp=FAR + timedelta(days=60), org_id=OTHER_ORG)
    assert table_of(row.id) == partitions.DEFAULT
    assert partitions.default_rows() == 2
    partitions.make_ahead(FAR, months=0)
    assert table_of(row.id) == "audit_requestauditentry_2090_01"
    assert table_of(other.id) == partitions.DEFAULT
    assert set(RequestAuditEntry.objects.all()) == {row, other}


@pytest.mark.django_db(transaction=True)
def test_a_row_that_arrives_while_its_partition_is_made_moves_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitions, "LOCK_TIMEOUT_MS", 60_000)

    def make() -> list[str]:
        try:
            return partitions.make_ahead(FAR, months=0)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            row = add_row(timestamp=FAR)
            making = pool.submit(make)
            until_true(lambda: making.done() or waits_for_the_default_partition())
        assert making.result() == ["audit_requestauditentry_2090_01"]
    try:
        assert table_of(row.id) == "audit_requestauditentry_2090_01"
        assert partitions.default_rows() == 0
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP TABLE audit_requestauditentry_2090_01")


def waits_for_the_default_partition() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = %s::regclass)", [partitions.DEFAULT]
        )
        return bool(cursor.fetchone()[0])


def test_old_partitions_go_whole_and_the_rest_stays() -> None:
    partitions.make_ahead(FAR, months=2)
    old, kept = add_row(timestamp=FAR), add_row(timestamp=FAR + timedelta(days=40), org_id=OTHER_ORG)
    assert partitions.drop_before(datetime(2090, 2, 1, tzinfo=UTC))[-1] == "audit_requestauditentry_2090_01"
    assert list(RequestAuditEntry.objects.all()) == [kept]
    assert table_of(kept.id) == "audit_requestauditentry_2090_02"
    assert old.id not in set(RequestAuditEntry.objects.values_list("id", flat=True))


def test_the_partition_without_a_beginning_loses_its_old_rows_one_by_one() -> None:
    add_row(timestamp=NOON - timedelta(days=1))
    kept = add_row(timestamp=NOON, org_id=OTHER_ORG)
    assert prune(NOON) == Pruning(1)
    assert list(RequestAuditEntry.objects.all()) == [kept]
    end = partitions.partitions()[0].end
    assert prune(end).dropped == ("audit_requestauditentry_before",)
    assert RequestAuditEntry.objects.count() == 0


def test_a_month_that_is_partly_old_stays() -> None:
    partitions.make_ahead(FAR, months=0)
    row = add_row(timestamp=FAR)
    done = prune(FAR + timedelta(days=5))
    assert "audit_requestauditentry_2090_01" not in done.dropped
    assert list(RequestAuditEntry.objects.all()) == [row]


def test_the_task_makes_what_is_missing() -> None:
    last = partitions.partitions()[-1]
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE {last.name}")
    with time_machine.travel(partitions.month_of(last.start, -partitions.MONTHS_AHEAD), tick=False):
        assert make_partitions() == 1
    assert partitions.partitions()[-1] == last


def test_a_lock_that_is_not_free_is_asked_for_again() -> None:
    busy = OperationalError("busy")
    busy.__cause__ = LockNotAvailable()
    answers = [busy, busy, None]
    pauses: list[float] = []

    def change() -> None:
        if fault := answers.pop(0):
            raise fault

    partitions.with_lock(change, pauses.append)
    assert pauses == [partitions.LOCK_PAUSE_S] * 2

    def never() -> None:
        raise busy

    with pytest.raises(OperationalError):
        partitions.with_lock(never, pauses.append)
    assert len(pauses) == 2 + partitions.LOCK_ATTEMPTS - 1
    with pytest.raises(OperationalError), transaction.atomic():
        partitions.with_lock(broken, pauses.append)
    assert len(pauses) == 2 + partitions.LOCK_ATTEMPTS - 1, "another fault is no busy lock"


class LockNotAvailable(Exception):
    sqlstate = "55P03"


def broken() -> None:
    raise OperationalError("the disk is full")


def test_the_command_makes_and_lists_them(capsys: pytest.CaptureFixture[str]) -> None:
    add_row(timestamp=FAR)
    call_command("audit_partitions", months=5)
    out = capsys.readouterr().out
    made = f"audit_requestauditentry_{month_of(clock.now(), 5):%Y_%m}"
    assert f"{made} " in out
    assert "made now" in out
    assert f"{partitions.DEFAULT} holds at least 1 rows" in out
