"""Removal of old request rows beside the calls.

Partitions go whole, once all their rows are old. A table or a partition without a beginning loses its old rows in short
transactions, oldest first over all organizations.
"""

from __future__ import annotations

import heapq
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from django.db.models import QuerySet

from audit import partitions
from audit.models import PrunedLog, RequestAuditEntry
from audit.organizations import organizations_of
from audit.stream import Log
from gateway.lib.ids import first_log_id_at

BATCH_ROWS = 5_000  # of one transaction
LONGEST_RUN_S = 240.0  # a task is killed at 300 s; the next night takes the remaining rows


@dataclass(frozen=True, slots=True)
class Pruning:
    removed: int  # rows, without those of dropped partitions
    dropped: tuple[str, ...] = ()  # partitions
    organizations_left: int = 0  # with rows that the run did not reach
    oldest_left: datetime | None = None


def prune(before: datetime) -> Pruning:
    """Removes what is older. A month's partition stays until its last row is. Spec: D87"""
    # Before the first row goes: a verification meanwhile must not report it as missing.
    PrunedLog.objects.update_or_create(log=Log.REQUESTS, defaults={"before": before})
    if not partitions.is_partitioned():
        return remove_older_than(before)
    dropped = tuple(partitions.drop_before(before))
    oldest = next(iter(partitions.partitions()), None)
    if partitions.default_rows(1):
        return replace(remove_older_than(before), dropped=dropped)
    if oldest is None or oldest.start is not None:
        return Pruning(0, dropped)
    return replace(remove_older_than(min(before, oldest.end)), dropped=dropped)


def remove_older_than(
    before: datetime,
    *,
    batch_rows: int = BATCH_ROWS,
    longest_run_s: float = LONGEST_RUN_S,
    monotonic: Callable[[], float] = time.monotonic,
) -> Pruning:
    """Removes rows one by one, until none is left or the time runs out. Spec: D87"""
    stop_at = monotonic() + longest_run_s
    removed = 0
    waiting = [
        (oldest, org_id)
        for org_id in organizations_of(RequestAuditEntry)
        if (oldest := _oldest(org_id, before)) is not None
    ]
    heapq.heapify(waiting)
    while waiting and monotonic() < stop_at:
        # The organization with the oldest row, so none waits behind the size of another.
        _, org_id = waiting[0]
        batch = _old_rows(org_id, before).order_by("id").values("pk")[:batch_rows]
        removed += RequestAuditEntry.objects.filter(pk__in=batch).delete()[0]
        oldest = _oldest(org_id, before)
        if oldest is None:
            heapq.heappop(waiting)
        else:
            heapq.heapreplace(waiting, (oldest, org_id))
    return Pruning(removed, (), len(waiting), waiting[0][0] if waiting else None)


def _old_rows(org_id: uuid.UUID, before: datetime) -> QuerySet[RequestAuditEntry]:
    return RequestAuditEntry.objects.filter(org_id=org_id, id__lt=first_log_id_at(before))


def _oldest(org_id: uuid.UUID, before: datetime) -> datetime | None:
    return _old_rows(org_id, before).order_by("id").values_list("timestamp", flat=True).first()
