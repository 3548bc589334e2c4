"""How rows of calls leave: oldest first, in transactions that are short enough for calls to go on beside them."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from datetime import datetime

from audit.models import RequestAuditEntry

BATCH_ROWS = 5_000
LONGEST_RUN_S = 240.0  # a task is killed at 300 s; what is left goes the next night


def remove_older_than(before: datetime, *, batch_rows: int = BATCH_ROWS, longest_run_s: float = LONGEST_RUN_S) -> int:
    """How many rows older than `before` were removed; fewer than there are only when the time ran out. Spec: D87"""
    stop_at = time.monotonic() + longest_run_s
    removed = 0
    for org_id in _organizations():
        old = RequestAuditEntry.objects.filter(org_id=org_id, timestamp__lt=before).order_by("timestamp", "id")
        batch = batch_rows
        while batch == batch_rows:
            if time.monotonic() >= stop_at:
                return removed
            batch, _ = RequestAuditEntry.objects.filter(pk__in=old.values("pk")[:batch_rows]).delete()
            removed += batch
    return removed


def _organizations() -> Iterator[uuid.UUID]:
    """Every organization in the log, each found by one step down the index. Those that were deleted are among them."""
    found = RequestAuditEntry.objects.order_by("org_id").values_list("org_id", flat=True)
    org_id = found.first()
    while org_id is not None:
        yield org_id
        org_id = found.filter(org_id__gt=org_id).first()
