"""The roll-ups are a recount of all rows that were handed out: after kills, repetitions, late rows, side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from audit.models import RequestAuditEntry, StreamCursor, UsageCount, UsageDuration, UsageLabel
from audit.tasks import roll_up_usage
from audit.usage.rollup import CONSUMER, LOG, roll_up, roll_up_all
from audit.usage.row_ids import row_id
from gateway.settings import workers
from tests.api.audit.rows import NOON, ORG, OTHER_ORG
from tests.api.audit.usage.rows import calls, expected, log_row, next_position, rows_of, store, stored, undone
from tests.factories.races import at_once

pytestmark = pytest.mark.django_db


@pytest.mark.django_db(transaction=True)
@given(facts=st.lists(calls, max_size=30), limit=st.integers(1, 12))
def test_roll_ups_are_a_recount_of_the_log(facts: list[dict[str, Any]], limit: int) -> None:
    with undone():
        rows = rows_of(facts)
        store(*rows)
        rolled = []
        while found := roll_up(limit):
            rolled.append(found)
        assert sum(rolled) == len(rows)
        assert max(rolled, default=0) <= limit
        assert stored() == expected(rows)
        assert roll_up(limit) == 0
        assert stored() == expected(rows)


def test_rows_that_become_final_late_are_counted_then_and_once() -> None:
    early, late, never = log_row(), log_row(NOON - timedelta(minutes=9), position=None), log_row(position=None)
    store(early, late, never)
    roll_up()
    assert stored() == expected([early])
    RequestAuditEntry.objects.filter(pk=late.pk).update(position=next_position())
    late.refresh_from_db()
    roll_up()
    roll_up()
    assert stored() == expected([early, late])


def test_the_latest_label_stays_when_an_older_row_comes_later() -> None:
    new = log_row(NOON, user_label="Ana Lee")
    old = log_row(NOON - timedelta(minutes=5), user_label="Ana")
    foreign = log_row(NOON + timedelta(minutes=5), user_label="Somebody", org_id=OTHER_ORG)
    for row in (new, old, foreign):
        store(row)
        roll_up()
    assert dict(UsageLabel.objects.values_list("org_id", "label")) == {ORG: "Ana Lee", OTHER_ORG: "Somebody"}


class Killed(Exception):
    """The process died here."""


class Death:
    """An execute wrapper that kills the process at one statement of a transaction, before it runs or after."""

    def __init__(self, at: int, *, after: bool) -> None:
        self._left, self._after = at, after
        self.has_come = False

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if "SAVEPOINT" in sql:  # stands for the end of the transaction, which no test can kill
            return execute(sql, params, many, context)
        self._left -= 1
        if self._left >= 0:
            return execute(sql, params, many, context)
        self.has_come = True
        if self._after:
            execute(sql, params, many, context)
        raise Killed


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_process_that_dies_at_any_statement_loses_and_doubles_nothing(after: bool) -> None:
    first, second = log_row(), log_row(org_id=OTHER_ORG)
    store(first)
    roll_up()
    store(second)
    deaths = 0
    while True:
        death = Death(deaths, after=after)
        with suppress(Killed), connection.execute_wrapper(death):
            roll_up()
        if not death.has_come:
            break
        deaths += 1
        assert stored() == expected([first])
    assert deaths >= 4, "the cursor is looked for, read and moved, and the rows are counted"
    assert stored() == expected([first, second])


def test_a_batch_takes_few_statements_however_many_rows_it_has() -> None:
    def statements(rows: int) -> int:
        store(*(log_row(NOON + timedelta(seconds=number)) for number in range(rows)))
        with CaptureQueriesContext(connection) as captured:
            assert roll_up() == rows
        return len(captured)

    roll_up()
    assert statements(3) == statements(300)


def test_an_id_is_a_place_and_the_same_on_each_database() -> None:
    rows = [
        log_row(vendor="", tool="naïve 工具", status="denied", error_code="rate_limited"),
        log_row(NOON.replace(hour=0), org_id=OTHER_ORG, vendor="acme", tool="", duration_ms=2**31 - 1),
    ]
    store(*rows)
    roll_up()
    counts, durations = list(UsageCount.objects.all()), list(UsageDuration.objects.all())
    assert (len(counts), len(durations)) == (4, 2)
    for count in counts:
        texts = (count.vendor, count.tool, count.user_id, count.source, count.outcome)
        assert count.id == row_id(count.org_id, count.day, count.hour, texts)
    for each in durations:
        assert each.id == row_id(each.org_id, each.day, each.hour, (each.vendor, str(each.bucket)))


@pytest.mark.django_db(transaction=True)
def test_of_two_processes_at_once_each_row_is_counted_by_one() -> None:
    rows = [log_row(NOON + timedelta(minutes=number), org_id=(ORG, OTHER_ORG)[number % 2]) for number in range(60)]
    store(*rows)
    StreamCursor.objects.get_or_create(name=CONSUMER, log=LOG.value)

    def work() -> int:
        return sum(roll_up(7) for _ in range(20))

    counted = at_once(work, work, work)
    assert not [each for each in counted if isinstance(each, Exception)], counted
    roll_up_all()
    assert stored() == expected(rows)


@pytest.mark.django_db(transaction=True)
def test_a_second_process_returns_at_once() -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has one writer: the second process waits for the file")
    row = log_row()
    store(row)
    StreamCursor.objects.get_or_create(name=CONSUMER, log=LOG.value)
    with transaction.atomic():
        assert roll_up() == 1
        assert at_once(roll_up) == [0]
    assert stored() == expected([row])


def readings(*values: float) -> Callable[[], float]:
    left: Iterator[float] = iter(values)
    return lambda: next(left)


def test_a_run_goes_on_until_the_stream_is_empty_or_its_time_is_up() -> None:
    rows = [log_row() for _ in range(5)]
    store(*rows)
    assert roll_up_all(2, longest_run_s=10.0, monotonic=readings(0.0, 1.0, 11.0)) == 2
    assert roll_up_all() == 3
    assert roll_up_all() == 0
    assert stored() == expected(rows)


def test_the_task_is_scheduled_by_its_name() -> None:
    store(log_row())
    assert roll_up_usage() == 1
    entry = workers.CELERY_BEAT_SCHEDULE["audit.roll_up_usage"]
    assert entry["task"] == roll_up_usage.name
    assert UsageDuration.objects.exists()
