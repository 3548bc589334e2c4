"""The records that wait for a destination, in the order of both streams."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from heapq import merge
from itertools import islice

from django.db.models import Exists, OuterRef, Q, QuerySet

from audit.models import AdminAuditEntry, LogDestination, RequestAuditEntry
from audit.shipping.events import Event, event_of_call, event_of_change
from audit.stream import Entry, Log, Place, place_of_row, readable_below, rows_of_organization_after
from audit.stream_position import ReadableBelow

BATCH_EVENTS = 500  # D98
SKIPPED_AT_ONCE = 50_000
COUNTED = 100_000  # at most; more is "more than"
_COLUMNS = {Log.REQUESTS: ("requests_position", "requests_row"), Log.ADMIN: ("admin_position", "admin_row")}


@dataclass(frozen=True, slots=True)
class Record:
    log: Log
    place: Place
    event: Event


@dataclass(frozen=True, slots=True)
class Lag:
    """The records that wait. `records` stops at COUNTED; `oldest` is the time of the oldest, None without one."""

    records: int
    oldest: datetime | None

    @property
    def is_more(self) -> bool:
        """There may be more records than `records`."""
        return self.records >= COUNTED

    def seconds(self, now: datetime) -> int:
        """The age of the oldest record; 0 without one."""
        return 0 if self.oldest is None else max(0, int((now - self.oldest).total_seconds()))


def place_in(destination: LogDestination, log: Log) -> Place:
    position, row_id = _COLUMNS[log]
    return Place(getattr(destination, position), getattr(destination, row_id))


def columns_of(places: dict[Log, Place]) -> dict[str, object]:
    """The columns of a destination that hold these places."""
    return {
        column: value
        for log, place in places.items()
        for column, value in zip(_COLUMNS[log], (place.position, place.id), strict=True)
    }


def next_records(destination: LogDestination, limit: int = BATCH_EVENTS) -> list[Record]:
    # One bound for both logs: with a later one for the second, its rows would overtake those of the first.
    below = readable_below()
    rows = merge(*(_rows(destination, log, below)[:limit] for log in Log), key=place_of_row)
    return [_record(row) for row in islice(rows, limit)]


def last_places(records: Iterable[Record]) -> dict[Log, Place]:
    """How far the logs have been read when all of `records` have been dealt with."""
    return {record.log: record.place for record in records}


def rows_before(destination: LogDestination, log: Log, moment: datetime) -> Sequence[tuple[Place, datetime]]:
    """The next rows, as long as they are older than `moment`, SKIPPED_AT_ONCE at most."""
    found = _rows(destination, log).values_list("position", "id", "timestamp")[:SKIPPED_AT_ONCE]
    older = []
    for position, row_id, timestamp in found:
        if timestamp >= moment:
            break
        older.append((Place(position, row_id), timestamp))
    return older


def lag_of(destination: LogDestination) -> Lag:
    rows = [_rows(destination, log) for log in Log]
    oldest = [row.timestamp for each in rows if (row := each.first()) is not None]
    counted = sum(each.order_by()[:COUNTED].count() for each in rows)
    return Lag(min(counted, COUNTED), min(oldest, default=None))


def with_waiting_records(destinations: QuerySet[LogDestination]) -> QuerySet[LogDestination]:
    """Those that have something to deliver, found by one step along an index of each log."""
    waiting = Q()
    for model, log in ((RequestAuditEntry, Log.REQUESTS), (AdminAuditEntry, Log.ADMIN)):
        position, row_id = (OuterRef(column) for column in _COLUMNS[log])
        rows = model.objects.filter(  # type: ignore[attr-defined]
            Q(position__gt=position) | Q(position=position, id__gt=row_id),
            org_id=OuterRef("org_id"),
            position__isnull=False,
            position__gte=position,
            position__lt=ReadableBelow(),
        )
        waiting |= Q(Exists(rows))
    return destinations.filter(waiting)


def _rows(destination: LogDestination, log: Log, below: int | None = None) -> QuerySet[Entry]:
    return rows_of_organization_after(place_in(destination, log), log, destination.org_id, below)


def _record(row: Entry) -> Record:
    if isinstance(row, RequestAuditEntry):
        return Record(Log.REQUESTS, place_of_row(row), event_of_call(row))
    return Record(Log.ADMIN, place_of_row(row), event_of_change(row))
