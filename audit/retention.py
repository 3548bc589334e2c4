"""Removal of old request rows, oldest first over all organizations, in short transactions beside the calls."""

from __future__ import annotations

import heapq
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from audit.models import RequestAuditEntry

BATCH_ROWS = 5_000  # of one transaction
LONGEST_RUN_S = 240.0  # a task is killed at 300 s; the next night takes the remaining rows


@dataclass(frozen=True, slots=True)
class Pruning:
    removed: int
    organizations_left: int = 0  # with rows that the run did not reach
    oldest_left: datetime | None = None


def remove_older_than(
    before: datetime,
    *,
    batch_rows: int = BATCH_ROWS,
    longest_run_s: float = LONGEST_RUN_S,
    monotonic: Callable[[], float] = time.monotonic,
) -> Pruning:
    """Removes rows until none is left or the time runs out. Spec: D87"""
    stop_at = monotonic() + longest_run_s
    removed = 0
    waiting = [(oldest, org_id) for org_id in _organizations() if (oldest := _oldest(org_id, before)) is not None]
    heapq.heapify(waiting)
    while waiting and monotonic() < stop_at:
        # The organization with the oldest row, so none waits behind the size of another.
        _, org_id = waiting[0]
        batch = _old_rows(org_id, before).order_by("timestamp", "id").values("pk")[:batch_rows]
        removed += RequestAuditEntry.objects.filter(pk__in=batch).delete()[0]
        oldest = _oldest(org_id, before)
        if oldest is None:
            heapq.heappop(waiting)
        else:
            heapq.heapreplace(waiting, (oldest, org_id))
    return Pruning(removed, len(waiting), waiting[0][0] if waiting else None)


def _old_rows(org_id: uuid.UUID, before: datetime) -> QuerySet[RequestAuditEntry]:
    return RequestAuditEntry.objects.filter(org_id=org_id, timestamp__lt=before)


def _oldest(org_id: uuid.UUID, before: datetime) -> datetime | None:
    return _old_rows(org_id, before).order_by("timestamp", "id").values_list("timestamp", flat=True).first()


def _organizations() -> Iterator[uuid.UUID]:
    # One index step for each organization; deleted ones are included.
    found = RequestAuditEntry.objects.order_by("org_id").values_list("org_id", flat=True)
    org_id = found.first()
    while org_id is not None:
        yield org_id
        org_id = found.filter(org_id__gt=org_id).first()
