"""A rebuild of any hours leaves what a recount of all rolled-up rows would, and takes nothing from the past."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import datetime, timedelta
from io import StringIO
from typing import Any

import pytest
import time_machine
from django.core.management import CommandError, call_command
from django.db.models import F
from hypothesis import given
from hypothesis import strategies as st

from audit.models import RequestAuditEntry, UsageCount, UsageDuration
from audit.stream import take_stretch
from audit.usage import rebuild as rebuilding
from audit.usage import rollup
from audit.usage.rebuild import ATTEMPTS, RollUpBusy, rebuild
from audit.usage.rollup import roll_up
from tests.api.audit.rows import NOON, ORG, OTHER_ORG
from tests.api.audit.usage.rows import EVENING, calls, expected, log_row, rows_of, store, stored, undone
from tests.factories.races import at_once

pytestmark = pytest.mark.django_db
LATER = NOON + timedelta(days=30)
START, END = NOON - timedelta(days=40), NOON + timedelta(days=5)


@pytest.fixture(autouse=True)
def _march() -> Iterator[None]:
    with time_machine.travel(LATER, tick=False):
        yield


def run(org_id: uuid.UUID | None = None, start: datetime = START, end: datetime = END) -> int:
    """The days that were recounted."""
    return len(list(rebuild(org_id, start, end)))


def damage() -> None:
    """Every counter is wrong, and one is missing."""
    UsageCount.objects.update(calls=F("calls") + 7, duration_ms=0)
    UsageDuration.objects.update(calls=1_000)
    if row := UsageCount.objects.order_by("pk").first():
        row.delete()


@pytest.mark.django_db(transaction=True)
@given(facts=st.lists(calls, max_size=25), rolled=st.integers(0, 25))
def test_wrong_counters_are_right_again(facts: list[dict[str, Any]], rolled: int) -> None:
    with undone():
        rows = rows_of(facts)
        store(*rows)
        if rolled:
            roll_up(rolled)
        damage()
        run()
        assert stored() == expected(rows)
        run()
        roll_up()
        assert stored() == expected(rows)


@pytest.mark.django_db(transaction=True)
@given(facts=st.lists(calls, max_size=25), hours=st.tuples(st.integers(0, 30), st.integers(1, 30)))
def test_any_hours_may_be_recounted_and_right_ones_stay(facts: list[dict[str, Any]], hours: tuple[int, int]) -> None:
    with undone():
        rows = rows_of(facts)
        store(*rows)
        roll_up()
        start = EVENING + timedelta(hours=hours[0], minutes=20)
        run(start=start, end=start + timedelta(hours=hours[1]))
        assert stored() == expected(rows)


def test_rows_that_wait_are_left_to_the_stream() -> None:
    """The rebuild of a day takes the stream's next batch, and leaves what lies behind it."""
    rolled, taken, waiting, open_row = log_row(), log_row(), log_row(), log_row(position=None)
    store(rolled)
    roll_up()
    store(taken, waiting, open_row)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rebuilding, "BATCH_ROWS", 1)
        run()
    assert stored() == expected([rolled, taken])
    roll_up()
    assert stored() == expected([rolled, taken, waiting])


def test_only_the_named_organization_and_hours_are_recounted() -> None:
    rows = [log_row(NOON + timedelta(hours=hour), org_id=org) for org in (ORG, OTHER_ORG) for hour in range(3)]
    store(*rows)
    roll_up()
    UsageCount.objects.update(calls=50)
    assert run(ORG, NOON + timedelta(hours=1), NOON + timedelta(hours=2)) == 1
    found = dict(UsageCount.objects.filter(org_id=ORG).values_list("hour", "calls"))
    assert found == {12: 50, 13: 1, 14: 50, 24: 101}
    assert set(UsageCount.objects.filter(org_id=OTHER_ORG).values_list("calls", flat=True)) == {50}


def test_hours_that_the_log_has_lost_keep_their_counters() -> None:
    lost = [log_row(NOON - timedelta(days=2)), log_row(NOON), log_row(NOON + timedelta(minutes=1))]
    kept = [log_row(NOON + timedelta(minutes=30)), log_row(NOON + timedelta(hours=1))]
    store(*lost, *kept)
    roll_up()
    RequestAuditEntry.objects.filter(pk__in=[row.pk for row in lost]).delete()
    run()
    assert stored() == expected([*lost, *kept])
    RequestAuditEntry.objects.all().delete()
    run()
    assert stored() == expected([*lost, *kept])


def test_an_hour_that_the_retention_has_begun_to_remove_keeps_its_counters(settings: Any) -> None:
    settings.AUDIT_RETENTION_DAYS = 30
    lost, kept = log_row(NOON - timedelta(minutes=20)), log_row(NOON.replace(minute=59) - timedelta(hours=1))
    store(lost, kept)
    roll_up()
    RequestAuditEntry.objects.filter(pk=lost.pk).delete()
    run()
    assert stored() == expected([lost, kept])


def test_a_rebuild_waits_for_the_roll_up_and_gives_up_after_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    row = log_row()
    store(row)
    roll_up()
    damage()
    slept: list[float] = []
    answers = [None, None, None]
    monkeypatch.setattr(rollup, "take_stretch", lambda *args: answers.pop() if answers else take_stretch(*args))
    assert len(list(rebuild(ORG, START, END, sleep=slept.append))) == 1
    assert stored() == expected([row])
    assert len(slept) == 3
    monkeypatch.setattr(rollup, "take_stretch", lambda *args: None)
    with pytest.raises(RollUpBusy):
        list(rebuild(ORG, START, END, sleep=slept.append))
    assert len(slept) == 3 + ATTEMPTS
    assert round(sum(slept[3:])) == 60


@pytest.mark.django_db(transaction=True)
def test_a_rebuild_beside_roll_ups_counts_each_row_once() -> None:
    first = [log_row(NOON + timedelta(minutes=number)) for number in range(30)]
    second = [log_row(NOON + timedelta(minutes=number), user_id="user-2") for number in range(30)]
    store(*first)
    roll_up()
    damage()
    store(*second)

    def recount() -> int:
        return sum(run() for _ in range(3))

    def roll() -> int:
        return sum(roll_up(4) for _ in range(10))

    results = at_once(recount, roll, roll)
    assert not [each for each in results if isinstance(each, Exception)], results
    while roll_up():
        pass
    assert stored() == expected([*first, *second])


def command(*args: str) -> str:
    out = StringIO()
    call_command("rebuild_usage", *args, stdout=out)
    return out.getvalue()


def test_the_command_shows_each_day_and_the_sum() -> None:
    rows = [log_row(NOON, count=3), log_row(NOON + timedelta(days=1)), log_row(org_id=OTHER_ORG)]
    store(*rows)
    roll_up()
    damage()
    assert command("--org", str(ORG)).splitlines() == [
        f"{ORG} 2026-03-10: 3 calls",
        f"{ORG} 2026-03-11: 1 calls",
        "Recounted 4 calls of 2 days.",
    ]
    assert command().splitlines()[-1] == "Recounted 5 calls of 3 days."
    assert stored() == expected(rows)
    assert command("--start", "2026-03-11").splitlines()[-1] == "Recounted 1 calls of 1 days."
    assert command("--org", str(uuid.uuid4())).splitlines() == ["Recounted 0 calls of 0 days."]


@pytest.mark.parametrize("args", [("--org", "x"), ("--start", "x"), ("--start", ""), ("--end", "2026-02-30")])
def test_the_command_refuses_what_it_cannot_read(args: tuple[str, ...]) -> None:
    with pytest.raises(CommandError):
        command(*args)


def test_the_command_says_that_another_process_is_at_it(monkeypatch: pytest.MonkeyPatch) -> None:
    store(log_row())

    def busy(*args: object) -> Iterator[None]:
        raise RollUpBusy
        yield

    monkeypatch.setattr("audit.management.commands.rebuild_usage.rebuild", busy)
    with pytest.raises(CommandError, match="Try again"):
        command()
