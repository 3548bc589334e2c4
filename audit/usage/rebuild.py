"""Recounts hours of the roll-ups from the log. A row that was not rolled up yet is left to the stream."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from datetime import time as time_of_day

from django.conf import settings
from django.db import transaction
from django.db.models import Max, Min, Q

from audit.models import RequestAuditEntry
from audit.organizations import organizations_of
from audit.stream import Place
from audit.usage.counters import add_counters
from audit.usage.fold import COLUMNS, Counters, fold
from audit.usage.rollup import BATCH_ROWS, take_and_add
from audit.usage_keys import WHOLE_DAY, CountKey, DurationKey, Sums
from audit.usage_models import UsageCount, UsageDuration
from gateway.lib import clock, ids

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
PAUSE_S = 0.2  # between attempts to get the lock
ATTEMPTS = 300
FETCHED_ROWS = 5_000


class RollUpBusy(Exception):
    """Another process held the lock of the roll-up for a minute."""


@dataclass(frozen=True, slots=True)
class RebuiltDay:
    """One organization's day, and the calls that its recounted hours have."""

    org_id: uuid.UUID
    day: date
    calls: int


def rebuild(
    org_id: uuid.UUID | None, start: datetime, end: datetime, *, sleep: Callable[[float], None] = time.sleep
) -> Iterator[RebuiltDay]:
    """Recounts every hour that the range touches, of one organization or of all; a transaction for each day.

    Hours whose rows the log no longer has in full keep their counters. Raises: RollUpBusy.
    """
    first, last = _hour(start), _hour(end - timedelta(microseconds=1))
    for org in [org_id] if org_id else organizations_of(RequestAuditEntry):
        for day in _days(org, first, last):
            yield _rebuild_day(org, day, first, last, sleep)


def _rebuild_day(
    org_id: uuid.UUID, day: date, first: datetime, last: datetime, sleep: Callable[[float], None]
) -> RebuiltDay:
    for _ in range(ATTEMPTS):
        with transaction.atomic():
            # The lock keeps the set of counted rows as it is while they are counted again.
            taken = take_and_add(BATCH_ROWS)
            if taken is not None:
                return RebuiltDay(org_id, day, _recount(org_id, day, first, last, taken[1]))
        sleep(PAUSE_S)
    raise RollUpBusy


def _recount(org_id: uuid.UUID, day: date, first: datetime, last: datetime, through: Place) -> int:
    midnight = datetime.combine(day, time_of_day(), UTC)
    begin, end = max(first, _complete_from(org_id), midnight), min(last + HOUR, midnight + DAY)
    if begin >= end:
        return 0
    hours = range(begin.hour, begin.hour + (end - begin) // HOUR)
    for model in (UsageCount, UsageDuration):
        model._default_manager.filter(org_id=org_id, day=day, hour__in=[*hours, WHOLE_DAY]).delete()
    rolled = Q(position__lt=through.position) | Q(position=through.position, id__lte=through.id)
    rows = RequestAuditEntry.objects.filter(rolled, **_ids(org_id, begin, end))
    counters = fold(rows.values_list(*COLUMNS, named=True).iterator(FETCHED_ROWS))
    counted = sum(sums.calls for sums in counters.counts.values())
    counters.add_days(_kept_hours(org_id, day))
    add_counters(counters)
    return counted


def _kept_hours(org_id: uuid.UUID, day: date) -> Counters:
    kept = Counters()
    for row in UsageCount.objects.filter(org_id=org_id, day=day, hour__in=range(WHOLE_DAY)):
        key = CountKey(*(getattr(row, name) for name in CountKey._fields))
        kept.counts[key] = Sums(*(getattr(row, name) for name in Sums._fields))
    for each in UsageDuration.objects.filter(org_id=org_id, day=day, hour__in=range(WHOLE_DAY)):
        kept.durations[DurationKey(*(getattr(each, name) for name in DurationKey._fields))] = each.calls
    return kept


def _complete_from(org_id: uuid.UUID) -> datetime:
    """The first hour that the log certainly has in full; the far future where it has no row."""
    oldest = RequestAuditEntry.objects.filter(org_id=org_id).order_by("id").values_list("id", flat=True).first()
    if oldest is None:
        return datetime.max.replace(tzinfo=UTC)
    hour = _hour(ids.time_of(oldest))
    counted = UsageCount.objects.filter(org_id=org_id, hour=WHOLE_DAY).aggregate(first=Min("day"))["first"]
    earlier = UsageCount.objects.filter(org_id=org_id, day=hour.date(), hour__in=range(hour.hour)).exists()
    # Counters from before the oldest row: the log has removed rows, perhaps also of that row's hour.
    if (counted is not None and counted < hour.date()) or earlier:
        hour += HOUR
    removed_before = clock.now() - timedelta(days=settings.AUDIT_RETENTION_DAYS)
    return max(hour, _hour(removed_before) + HOUR) if hour <= removed_before else hour


def _days(org_id: uuid.UUID, first: datetime, last: datetime) -> Iterator[date]:
    """Days of the range on which the organization has counters or rows."""
    counted = UsageCount.objects.filter(org_id=org_id, hour=WHOLE_DAY).aggregate(first=Min("day"), last=Max("day"))
    logged = RequestAuditEntry.objects.filter(org_id=org_id).order_by("id").values_list("id", flat=True)
    oldest, newest = logged.first(), logged.last()
    known = [day for day in counted.values() if day is not None]
    known += [ids.time_of(each).date() for each in (oldest, newest) if each is not None]
    if not known:
        return
    day = max(first.date(), min(known))
    while day <= min(last.date(), max(known)):
        yield day
        day += DAY


def _ids(org_id: uuid.UUID, begin: datetime, end: datetime) -> dict[str, uuid.UUID]:
    return {"org_id": org_id, "id__gte": ids.first_log_id_at(begin), "id__lt": ids.first_log_id_at(end)}


def _hour(moment: datetime) -> datetime:
    return moment.replace(minute=0, second=0, microsecond=0)
