"""Days that are over, whose figures are ready for dashboards. docs/decisions/0119

The rolling up and the rebuilding of a day's rows take its version away in their own transaction. So a version that a
statement sees says that the statement sees no row of the day in the roll-ups that the figures lack.
"""

from __future__ import annotations

import itertools
import time
import uuid
from collections.abc import Callable, Sequence
from datetime import date, timedelta

from django.db import connection, transaction

from audit.stream import take_stretch
from audit.usage import row_ids
from audit.usage.branches import OF_A_DAY
from audit.usage.day_figures import BY_DAY, BY_VENDOR, ReadyDay
from audit.usage.figures import Figures
from audit.usage.parts import CALLERS, DAYS, TOOLS, groups
from audit.usage.period import DAY, Parts
from audit.usage.rollup import CONSUMER, LOG
from audit.usage_models import UsageDay
from gateway.lib import clock, ids

# Of late calls, nearly all have come; and a process of the release before, which takes no version away, is at its end.
OVER_FOR = timedelta(days=1)
LONGEST_RUN_S = 10.0
SQLITE_PAUSE_S = 0.1  # it has one writer; others that wait look again that often
MOST_RUNS = 60  # of days one after the other: what lies between them are SELECTs of the statement
_NOT_READY = {"version": None, BY_DAY: None, BY_VENDOR: None}


def find(org_id: uuid.UUID, parts: Parts, columns: Sequence[str]) -> list[ReadyDay]:
    """Those among the whole days of a period, oldest first, with the figures of some columns."""
    if not parts.days:
        return []
    low, high = row_ids.of_days(org_id, *parts.days[0])
    chosen = UsageDay.objects.filter(org_id=org_id, id__gte=low, id__lte=high, version__isnull=False)
    rows = chosen.order_by("id").values("day", "version", *columns)
    found = [ReadyDay(row["day"], row["version"], row.get(BY_DAY), row.get(BY_VENDOR)) for row in rows]
    return _longest_runs(found)


def ids_of(org_id: uuid.UUID, days: Sequence[ReadyDay]) -> row_ids.Range:
    """The range of the ids of days in order."""
    return row_ids.of_days(org_id, days[0].day, days[-1].day + DAY)


def make_again(org_id: uuid.UUID, day: date) -> None:
    """In a transaction that holds the lock of the roll-up and changes rows of the day."""
    key = {"org_id": org_id, "day": day}
    UsageDay.objects.update_or_create(id=row_ids.day_id(org_id, day), defaults=_NOT_READY, create_defaults=key)


def make_ready(
    *,
    longest_run_s: float = LONGEST_RUN_S,
    monotonic: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Makes the days that wait, the newest first, until none is left or the time is up. Returns their number."""
    stop_at, made = monotonic() + longest_run_s, 0
    while monotonic() < stop_at and _make_next():
        made += 1
        if connection.vendor == "sqlite":
            sleep(SQLITE_PAUSE_S)
    return made


def _make_next() -> bool:
    """False: none waits, or another process rolls up."""
    over = (clock.now() - OVER_FOR).date()
    waiting = UsageDay.objects.filter(version__isnull=True, day__lt=over).order_by("-day")
    if not waiting.exists():
        return False
    with transaction.atomic():
        # The lock keeps the roll-ups as they are.
        if take_stretch(CONSUMER, LOG, 0) is None:
            return False
        row = waiting.first()
        if row is not None:
            _make(row)
    return row is not None


def _make(row: UsageDay) -> None:
    only_this = Parts(((row.day, row.day + DAY),), (), (), None)
    by_day, by_vendor = Figures(groups(row.org_id, only_this, (DAYS, TOOLS, CALLERS), OF_A_DAY.values()), ()).as_day()
    # An organization's removal, which takes no lock, may have removed the row: it must not come back.
    UsageDay.objects.filter(id=row.id).update(version=ids.new_id(), by_day=by_day, by_vendor=by_vendor)


def _longest_runs(days: list[ReadyDay]) -> list[ReadyDay]:
    runs = [
        [day for _, day in run]
        for _, run in itertools.groupby(enumerate(days), lambda each: each[1].day.toordinal() - each[0])
    ]
    longest = sorted(range(len(runs)), key=lambda number: len(runs[number]))[-MOST_RUNS:]
    return list(itertools.chain(*(runs[number] for number in sorted(longest))))
