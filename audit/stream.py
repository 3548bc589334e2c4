"""The one door of every consumer of the logs: final rows, each handed out exactly once to a named cursor, in order.

A row is final once it has a position: an outcome at once, an intent without one after FINAL_AFTER_S. The order is
(position, id). On PostgreSQL a position is a transaction's id, and only rows below the oldest open transaction are
handed out, so no slow commit is overtaken. A position says nothing about the time of a call. docs/decisions/0042
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from django.db import connection, transaction
from django.db.models import Max, QuerySet

from audit.models import AdminAuditEntry, LogModel, RequestAuditEntry, Seal, StreamCursor, StreamEra
from audit.stream_position import Beyond, NewPosition, ReadableBelow, begin_era
from gateway.lib import clock
from gateway.lib.ids import LAST_ID, first_log_id_at

# Longer than any call: its timeout of 300 s, finding its tool and its place in the queue of records.
FINAL_AFTER_S = 600
FINISHED_AT_ONCE = 500  # rows of one transaction


class Log(StrEnum):
    REQUESTS = "requests"
    ADMIN = "admin"


Entry = RequestAuditEntry | AdminAuditEntry
_MODELS: dict[Log, LogModel] = {Log.REQUESTS: RequestAuditEntry, Log.ADMIN: AdminAuditEntry}


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Rows up to and including it have been handed out."""

    position: int
    id: uuid.UUID


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows in order, possibly none; the cursor has moved to `through`."""

    rows: Sequence[Entry]
    through: Place


@dataclass(frozen=True, slots=True)
class Stretch:
    """A number of rows, all that come after one place up to and including another; the cursor has moved to the latter.

    Nothing but their removal changes which rows they are.
    """

    after: Place
    through: Place
    rows: int


def take(name: str, log: Log, limit: int) -> Batch | None:
    """Returns the next rows and moves the cursor, in the caller's transaction; None while another one holds it.

    The consumer stores its results in the same transaction. Raises: RuntimeError outside one.
    """
    cursor = _locked(name, log)
    if cursor is None:
        return None
    asked_at = clock.now()
    rows = list(rows_after(place_reached(cursor), log)[:limit])
    through = place_of_row(rows[-1]) if rows else place_reached(cursor)
    _move(cursor, through, reached_at=asked_at if len(rows) < limit else None)
    return Batch(rows, through)


def begin_at_end(name: str, log: Log) -> None:
    """A consumer that is new gets only what is written from now on."""
    if not StreamCursor.objects.filter(name=name, log=log).exists():
        end = end_of(log)
        StreamCursor.objects.get_or_create(name=name, log=log, defaults={"position": end.position, "row_id": end.id})


def take_stretch(name: str, log: Log, limit: int) -> Stretch | None:
    """As `take`, for a consumer whose own statements read the rows."""
    cursor = _locked(name, log)
    if cursor is None:
        return None
    asked_at, after = clock.now(), place_reached(cursor)
    places = list(rows_after(after, log).values_list("position", "id")[:limit])
    through = Place(*places[-1]) if places else after
    _move(cursor, through, reached_at=asked_at if len(places) < limit else None)
    return Stretch(after, through, len(places))


def rows_after(place: Place, log: Log, below: int | None = None) -> QuerySet[Entry]:
    """The rows that may be handed out after `place`, in order. `below`: the result of readable_below()."""
    bound = ReadableBelow() if below is None else below
    return final_rows(log).filter(beyond(place, log), position__lt=bound).order_by("position", "id")


def rows_of_organization_after(place: Place, log: Log, org_id: uuid.UUID, below: int | None = None) -> QuerySet[Entry]:
    """The same rows, of one organization."""
    return rows_after(place, log, below).filter(org_id=org_id)


def readable_below() -> int:
    """Returns the position below which the rows of both logs may be handed out."""
    if connection.vendor != "postgresql":
        return 2**63 - 1
    begin_era(connection)
    # Any row of the table serves: the expression does not depend on it.
    bound = StreamEra.objects.annotate(bound=ReadableBelow()).values_list("bound", flat=True).first()
    assert bound is not None, "an era has begun"  # noqa: S101 - for the type
    return int(bound)


def end_of(log: Log) -> Place:
    """Returns the place behind which every row comes that is written from now on, and perhaps a few before them."""
    if connection.vendor == "postgresql":
        return Place(readable_below() - 1, LAST_ID)
    highest = final_rows(log).aggregate(highest=Max("position"))["highest"]
    return Place(highest or 0, LAST_ID)


def final_rows(log: Log) -> QuerySet[Entry]:
    """Returns all final rows, in no order."""
    rows: QuerySet[Entry] = _MODELS[log].objects.filter(position__isnull=False)  # type: ignore[assignment]
    return rows


def beyond(place: Place, log: Log) -> Beyond:
    return Beyond(_MODELS[log]._meta.db_table, place.position, place.id)


def place_of_row(row: Entry) -> Place:
    assert row.position is not None, "only final rows are handed out"  # noqa: S101 - for the type
    return Place(row.position, row.id)


def place_reached(row: StreamCursor | Seal) -> Place:
    return Place(row.position, row.row_id)


def place_of(name: str, log: Log) -> Place:
    """Returns where a cursor is; the beginning for an unknown one."""
    return place_reached(StreamCursor.objects.filter(name=name, log=log).first() or StreamCursor())


def first_waiting(name: str, log: Log) -> Entry | None:
    """Returns the first final row that the cursor has not reached, whether it may be handed out yet or not."""
    return final_rows(log).filter(beyond(place_of(name, log), log)).order_by("position", "id").first()


def finish_stale_rows(now: datetime | None = None) -> int:
    """Makes a batch of rows final that nothing will change any more. Returns their number; 0 means that none is left.

    They are intents whose process died, counts of rate-limited calls whose minute is long over, and rows that were
    written before the era of a restored database began.
    """
    if connection.vendor == "postgresql":
        begin_era(connection)
    opened_before = first_log_id_at((now or clock.now()) - timedelta(seconds=FINAL_AFTER_S))
    return sum(_finish(log, opened_before) for log in Log)


def finish_all_stale_rows(may_go_on: Callable[[], bool]) -> None:
    """The same, batch by batch, while it may go on."""
    while finish_stale_rows() and may_go_on():
        pass


def _finish(log: Log, opened_before: uuid.UUID) -> int:
    rows = _MODELS[log].objects
    with transaction.atomic():
        stale = rows.filter(position__isnull=True, id__lt=opened_before).order_by("id").values_list("id", flat=True)
        ids = list(stale.select_for_update(skip_locked=True)[:FINISHED_AT_ONCE])
        table = _MODELS[log]._meta.db_table
        return rows.filter(id__in=ids, position__isnull=True).update(position=NewPosition(table))


def _move(cursor: StreamCursor, through: Place, reached_at: datetime | None) -> None:
    """`reached_at`: when nothing was behind `through`; None while there may be more."""
    cursor.position, cursor.row_id = through.position, through.id
    if reached_at is not None:
        cursor.reached_at = reached_at
    cursor.save(update_fields=["position", "row_id", "reached_at"])


def _locked(name: str, log: Log) -> StreamCursor | None:
    if not transaction.get_connection().in_atomic_block:
        raise RuntimeError("rows are taken in the transaction that uses them")
    cursors = StreamCursor.objects.filter(name=name, log=log)
    if not cursors.exists():
        # A second process waits here for the first transaction of a new consumer; later ones do not wait.
        cursors.get_or_create(name=name, log=log)
    return cursors.select_for_update(skip_locked=True).first()
