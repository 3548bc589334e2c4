"""Recounts hours of the roll-ups from the log. A row that was not rolled up yet is left to the stream."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Max, Min, QuerySet, Sum

from audit.models import RequestAuditEntry
from audit.organizations import organizations_of
from audit.stream import Place
from audit.usage import ready_days, row_ids
from audit.usage.counters import add_rows, add_stored_hours
from audit.usage.log_sql import LogRows
from audit.usage.period import DAY, HOUR
from audit.usage.rollup import BATCH_ROWS, take_and_add
from audit.usage_models import RollUp, UsageCount, UsageDuration
from gateway.lib import clock, ids

PAUSE_S = 0.2  # between attempts to get the lock
ATTEMPTS = 300


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
    midnight = clock.midnight(day)
    begin, end = max(first, _complete_from(org_id), midnight), min(last + HOUR, midnight + DAY)
    ready_days.make_again(org_id, day)  # also of hours that are kept
    if begin >= end:
        return 0
    hours = row_ids.of_hours(org_id, day, begin.hour, begin.hour + (end - begin) // HOUR)
    for model in (UsageCount, UsageDuration):
        for recounted in (hours, row_ids.of_days(org_id, day, day + DAY)):
            _stored(model, org_id, recounted).delete()
    add_stored_hours(org_id, day)  # those that are kept
    low, high = ids.first_log_id_at(begin), ids.first_log_id_at(end)
    add_rows(LogRows.between_ids(org_id, low, high, through))
    return _stored(UsageCount, org_id, hours).aggregate(calls=Sum("calls"))["calls"] or 0


def _stored(model: type[RollUp], org_id: uuid.UUID, rows: row_ids.Range) -> QuerySet[RollUp]:
    return model._default_manager.filter(org_id=org_id, id__gte=rows.low, id__lte=rows.high)


def _counted_days(org_id: uuid.UUID) -> dict[str, date | None]:
    """The first and the last day that has counters."""
    return _stored(UsageCount, org_id, row_ids.of_all_days(org_id)).aggregate(first=Min("day"), last=Max("day"))


def _complete_from(org_id: uuid.UUID) -> datetime:
    """The first hour that the log certainly has in full; the far future where it has no row."""
    oldest = RequestAuditEntry.objects.filter(org_id=org_id).order_by("id").values_list("id", flat=True).first()
    if oldest is None:
        return datetime.max.replace(tzinfo=UTC)
    hour = _hour(ids.time_of(oldest))
    counted = _counted_days(org_id)["first"]
    earlier = (
        hour.hour > 0 and _stored(UsageCount, org_id, row_ids.of_hours(org_id, hour.date(), 0, hour.hour)).exists()
    )
    # Counters from before the oldest row: the log has removed rows, perhaps also of that row's hour.
    if (counted is not None and counted < hour.date()) or earlier:
        hour += HOUR
    removed_before = clock.now() - timedelta(days=settings.AUDIT_RETENTION_DAYS)
    return max(hour, _hour(removed_before) + HOUR) if hour <= removed_before else hour


def _days(org_id: uuid.UUID, first: datetime, last: datetime) -> Iterator[date]:
    """Days of the range on which the organization has counters or rows."""
    logged = RequestAuditEntry.objects.filter(org_id=org_id).order_by("id").values_list("id", flat=True)
    oldest, newest = logged.first(), logged.last()
    known = [day for day in _counted_days(org_id).values() if day is not None]
    known += [ids.time_of(each).date() for each in (oldest, newest) if each is not None]
    if not known:
        return
    day = max(first.date(), min(known))
    while day <= min(last.date(), max(known)):
        yield day
        day += DAY


def _hour(moment: datetime) -> datetime:
    return moment.replace(minute=0, second=0, microsecond=0)
