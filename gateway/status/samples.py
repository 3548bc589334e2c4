"""Rows that the schedule writes: the last status of each part, and its seconds of each day."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import date, datetime, timedelta

from django.db import transaction
from django.db.models import F

from gateway.lib import clock
from gateway.status.models import PartDay, PartStatus
from gateway.status.parts import BACKGROUND, Status

EVERY_S = 60.0
# A status counts until the next sample, and no longer than this after the last one.
HOLDS = timedelta(minutes=5)
KEPT_DAYS = 90
_COLUMNS = {Status.OPERATIONAL: "operational_s", Status.DEGRADED: "degraded_s", Status.DOWN: "down_s"}
_Seconds = defaultdict[tuple[str, date], dict[str, int]]


@transaction.atomic
def record_samples(found: Mapping[str, Status], *, now: datetime) -> None:
    """Count the time since the last sample for the status that it had; days of before KEPT_DAYS are deleted.

    After a longer silence one thing is known of the time: background work, which takes the samples, stood still.
    """
    before = {row.part: row for row in PartStatus.objects.select_for_update().filter(part__in=found)}
    seconds: _Seconds = defaultdict(dict)
    for part, status in found.items():
        row = before.get(part)
        if row is None or row.checked_at >= now:
            continue
        counted = status_at(row, now)
        if counted in _COLUMNS:
            for day, spent in _by_day(row.checked_at, now):
                of_day = seconds[part, day]
                of_day[_COLUMNS[counted]] = of_day.get(_COLUMNS[counted], 0) + spent
        row.since = row.since if row.status == status else now
        row.status, row.checked_at = status, now
    PartStatus.objects.bulk_update(before.values(), ["status", "since", "checked_at"])
    PartStatus.objects.bulk_create(
        [
            PartStatus(part=part, status=status, since=now, checked_at=now)
            for part, status in found.items()
            if part not in before
        ],
        ignore_conflicts=True,
    )
    _add(seconds)
    if any(row_day != now.date() for _, row_day in seconds) or not before:
        PartDay.objects.filter(day__lte=now.date() - timedelta(days=KEPT_DAYS)).delete()


def status_at(row: PartStatus, now: datetime) -> Status:
    """The status that counts now, for the time since the last sample.

    Background work takes the samples: without one for longer than HOLDS it stands still, and nothing else is known.
    """
    if now - row.checked_at <= HOLDS:
        return Status(row.status)
    return Status.DOWN if row.part == BACKGROUND else Status.UNKNOWN


def _by_day(start: datetime, end: datetime) -> Iterator[tuple[date, int]]:
    """(day, whole seconds of it), of the days that are kept."""
    # Of whole seconds: the parts of a second before and after midnight are not lost.
    start, end = start.replace(microsecond=0), end.replace(microsecond=0)
    start = max(start, clock.midnight(end.date() - timedelta(days=KEPT_DAYS - 1)))
    while start < end:
        until = min(end, clock.midnight(start.date() + timedelta(days=1)))
        yield start.date(), int((until - start).total_seconds())
        start = until


def _add(seconds: _Seconds) -> None:
    """One statement for the rows of each day, and one for all that are new."""
    if not seconds:
        return
    days = {day for _, day in seconds}
    known = set(PartDay.objects.filter(day__in=days, part__in={part for part, _ in seconds}).values_list("part", "day"))
    PartDay.objects.bulk_create(
        [PartDay(part=part, day=day, **spent) for (part, day), spent in seconds.items() if (part, day) not in known]
    )
    # Equal additions share a statement: nearly all parts have the same status for the same time.
    alike: defaultdict[tuple[date, tuple[tuple[str, int], ...]], list[str]] = defaultdict(list)
    for (part, day), spent in seconds.items():
        if (part, day) in known:
            alike[day, tuple(sorted(spent.items()))].append(part)
    for (day, spent_items), parts in alike.items():
        PartDay.objects.filter(day=day, part__in=parts).update(**{name: F(name) + more for name, more in spent_items})
