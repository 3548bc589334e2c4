"""Removal of old rows of calls: the oldest of all organizations first, in transactions that calls go on beside."""

from __future__ import annotations

import heapq
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from audit.models import RequestAuditEntry

BATCH_ROWS = 5_000
LONGEST_RUN_S = 240.0  # a task is killed at 300 s; what is left goes the next night


@dataclass(frozen=True, slots=True)
class Pruning:
    """The rows that one run removed, the organizations that still have old rows, and their oldest row's time."""

    removed: int
    organizations_left: int = 0
    oldest_left: datetime | None = None


def remove_older_than(
    before: datetime,
    *,
    batch_rows: int = BATCH_ROWS,
    longest_run_s: float = LONGEST_RUN_S,
    monotonic: Callable[[], float] = time.monotonic,
) -> Pruning:
    """Remove rows older than `before`, until none is left or the time runs out. Spec: D87

    Each batch is taken from the organization whose oldest row is the oldest of all. Rows that a run does not reach are
    therefore the first of the next one, and no organization waits behind the size of another.
    """
    stop_at = monotonic() + longest_run_s
    removed = 0
    waiting = [(oldest, org_id) for org_id in _organizations() if (oldest := _oldest(org_id, before)) is not None]
    heapq.heapify(waiting)
    while waiting and monotonic() < stop_at:
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
    """One step down the index."""
    return _old_rows(org_id, before).order_by("timestamp", "id").values_list("timestamp", flat=True).first()


def _organizations() -> Iterator[uuid.UUID]:
    """Every organization in the log, each found by one step down the index. Those that were deleted are among them."""
    found = RequestAuditEntry.objects.order_by("org_id").values_list("org_id", flat=True)
    org_id = found.first()
    while org_id is not None:
        yield org_id
        org_id = found.filter(org_id__gt=org_id).first()
