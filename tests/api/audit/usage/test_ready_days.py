"""Days that are over have their figures ready, until a row of them comes."""

from __future__ import annotations

import itertools
import threading
from datetime import UTC, date, datetime, timedelta
from importlib import import_module
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from audit.models import RequestAuditEntry, StreamCursor, UsageCount, UsageDay, UsageDuration
from audit.tasks import roll_up_usage
from audit.usage import ready_days, selectors
from audit.usage.parts import groups
from audit.usage.period import Parts, Period
from audit.usage.ready_days import make_ready
from audit.usage.rebuild import rebuild
from audit.usage.rollup import CONSUMER, LOG, roll_up
from audit.usage.selectors import daily_usage, savings, usage, vendors
from tests.api.audit.rows import NOON, ORG, OTHER_ORG
from tests.api.audit.usage.rows import log_row, store
from tests.factories.races import at_once

pytestmark = pytest.mark.django_db
MARCH = Period(datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 4, 1, tzinfo=UTC), datetime(2026, 3, 31, tzinfo=UTC))
LISTS = {"acme": 100.0}


def ready() -> list[date]:
    return list(UsageDay.objects.filter(version__isnull=False).order_by("day").values_list("day", flat=True))


def store_days(*days_ago: int, **changes: Any) -> None:
    store(*(log_row(NOON - timedelta(days=each), **changes) for each in days_ago))


def test_ready_days_are_read_without_their_roll_ups() -> None:
    store_days(2, 1, 0, source="cli", duration_ms=200)
    assert roll_up_usage() == 3
    UsageCount.objects.all().delete()
    UsageDuration.objects.all().delete()
    found = usage(ORG, MARCH)
    assert (found.total.calls, found.total.average_ms, found.cli, len(found.days), found.user_count) == (
        3,
        200,
        3,
        3,
        1,
    )
    assert [(each.user_count, each.total.calls) for each in vendors(ORG, MARCH)] == [(1, 3)]
    assert [(each.tool, each.calls) for each in vendors(ORG, MARCH)[0].tools] == [(log_row().tool, 3)]
    assert vendors(ORG, MARCH, slug="acme") == [], "one vendor's roll-ups are read themselves"
    assert savings(ORG, MARCH, LISTS).tool_list_bytes == 300, "one list on each day"
    assert daily_usage(ORG, MARCH).user_count == 1
    assert usage(OTHER_ORG, MARCH).total.calls == 0


def test_only_a_day_that_is_over_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    store_days(2, 1, 0)
    roll_up()
    monkeypatch.setattr(ready_days.clock, "now", lambda: NOON)
    assert make_ready() == 1
    assert ready() == [(NOON - timedelta(days=2)).date()]


def test_a_late_row_takes_its_day_back_and_no_other() -> None:
    store_days(2, 1)
    roll_up()
    assert make_ready() == 2
    store(log_row(NOON - timedelta(days=1)), log_row(NOON - timedelta(days=2), org_id=OTHER_ORG))
    assert usage(ORG, MARCH).total.calls == 3, "while it waits"
    roll_up()
    assert ready() == [(NOON - timedelta(days=2)).date()]
    assert usage(ORG, MARCH).total.calls == 3
    assert make_ready() == 2
    assert usage(ORG, MARCH).total.calls == 3


def test_a_waiting_row_of_a_counted_caller_needs_no_other_list() -> None:
    store_days(1, source="cli")
    roll_up()
    make_ready()
    store_days(1, source="cli")
    assert savings(ORG, MARCH, LISTS).tool_list_bytes == 100


def test_a_rebuilt_day_is_made_again() -> None:
    store_days(1)
    roll_up()
    make_ready()
    UsageCount.objects.update(calls=1_000)
    assert usage(ORG, MARCH).total.calls == 1, "of the figures that were made before"
    assert [each.calls for each in rebuild(ORG, NOON - timedelta(days=2), NOON)] == [1]
    assert ready() == []
    assert make_ready() == 1
    assert usage(ORG, MARCH).total.calls == 1


def test_days_that_were_counted_before_are_entered_and_others_stay_as_they_are() -> None:
    store_days(3, 3, 2)
    store_days(4, org_id=OTHER_ORG)
    roll_up()
    UsageDay.objects.all().delete()  # of a release that made none
    store_days(1)
    roll_up()
    assert make_ready() == 1
    versions = set(UsageDay.objects.values_list("version", flat=True))
    at_the_time = MigrationLoader(connection).project_state(("audit", "0014_ready_days_of_usage")).apps
    for _ in range(2):
        import_module("audit.migrations.0015_days_counted_before").enter_days(at_the_time, None)
    waiting = UsageDay.objects.filter(version=None).values_list("org_id", "day")
    assert {(org_id, (NOON.date() - day).days) for org_id, day in waiting} == {(ORG, 3), (ORG, 2), (OTHER_ORG, 4)}
    assert versions == set(UsageDay.objects.exclude(version=None).values_list("version", flat=True))
    assert make_ready() == 3
    UsageCount.objects.all().delete()
    assert (usage(ORG, MARCH).total.calls, usage(OTHER_ORG, MARCH).total.calls) == (4, 1)


def test_a_day_whose_rows_are_gone_becomes_ready_by_a_rebuild() -> None:
    store_days(3, 1)
    roll_up()
    UsageDay.objects.all().delete()  # of a release that made none
    RequestAuditEntry.objects.all().delete()
    assert [each.calls for each in rebuild(ORG, NOON - timedelta(days=3), NOON)] == [0, 0, 0]
    assert make_ready() == 3
    assert [(NOON.date() - day).days for day in ready()] == [3, 2, 1]
    assert usage(ORG, MARCH).total.calls == 2


def test_a_day_that_changes_between_the_two_statements_is_read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    store_days(1)
    roll_up()
    make_ready()

    def late(*arguments: Any, **options: Any) -> Any:
        if options.get("ready"):
            store_days(1)
            roll_up()
        return groups(*arguments, **options)

    monkeypatch.setattr(selectors, "groups", late)
    assert usage(ORG, MARCH).total.calls == 2


def test_a_run_ends_in_time_and_the_next_goes_on() -> None:
    store_days(3, 2, 1)
    roll_up()
    readings = itertools.count()
    assert make_ready(longest_run_s=2, monotonic=lambda: next(readings)) == 1
    assert ready() == [(NOON - timedelta(days=1)).date()], "the newest first"
    assert (make_ready(), make_ready()) == (2, 0)


def test_a_writer_of_sqlite_that_waits_gets_its_turn_after_each_day() -> None:
    store_days(3, 2, 1)
    roll_up()
    pauses: list[float] = []
    assert make_ready(sleep=pauses.append) == 3
    assert pauses == ([0.1] * 3 if connection.vendor == "sqlite" else [])


def test_of_many_runs_of_days_the_longest_are_read_as_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ready_days, "MOST_RUNS", 1)
    store_days(8, 5, 4, 2)
    roll_up()
    make_ready()
    found = ready_days.find(ORG, Parts.of(MARCH), (ready_days.BY_DAY,))
    assert [(NOON.date() - each.day).days for each in found] == [5, 4]
    assert usage(ORG, MARCH).total.calls == 4


@pytest.mark.django_db(transaction=True)
def test_no_call_is_missing_or_counted_twice_while_days_are_made_and_taken_back() -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has one writer")
    StreamCursor.objects.get_or_create(name=CONSUMER, log=LOG.value)
    store_days(3, 2, 1)
    roll_up()
    stored = 3
    ends = threading.Event()

    def late_calls() -> None:
        nonlocal stored
        try:
            for number in range(12):
                store_days(1, user_id=f"user-{number}")
                stored += 1
                roll_up()
                make_ready()
        finally:
            ends.set()

    def recounts() -> None:
        while not ends.is_set():
            list(rebuild(ORG, NOON - timedelta(days=3), NOON))

    def dashboards() -> list[tuple[int, int, int]]:
        found = []
        while not ends.is_set():
            before, shown = stored, usage(ORG, MARCH)
            found.append((before, shown.total.calls, stored))
            assert sum(each.calls for each in shown.users) == shown.total.calls
            assert sum(each.calls for each in shown.vendors) == shown.total.calls
        return found

    ended = at_once(late_calls, recounts, dashboards)
    assert not [each for each in ended if isinstance(each, Exception)], ended
    read = ended[2]
    # A call is stored a moment before it is counted here.
    assert [each for each in read if not each[0] <= each[1] <= each[2] + 1] == []
    while make_ready():
        pass
    assert (usage(ORG, MARCH).total.calls, len(ready())) == (15, 3)
