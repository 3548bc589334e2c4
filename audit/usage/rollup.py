"""Folds the stream of the request log into the roll-ups, each final row once.

Counters and cursor move in one transaction: a process that dies at any step leaves both as they were.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from django.db import transaction

from audit.stream import Log, Place, finish_all_stale_rows, take_stretch
from audit.usage.counters import add_rows
from audit.usage.log_sql import LogRows

CONSUMER = "usage"
LOG = Log.REQUESTS
BATCH_ROWS = 5_000  # of one transaction
LONGEST_RUN_S = 15.0  # the worker has other tasks; the next run takes the rest


def roll_up(limit: int = BATCH_ROWS) -> int:
    """Folds one batch. Returns its rows: 0 at the end of the stream, and while another process rolls up."""
    with transaction.atomic():
        taken = take_and_add(limit)
    return 0 if taken is None else taken[0]


def roll_up_all(
    limit: int = BATCH_ROWS, *, longest_run_s: float = LONGEST_RUN_S, monotonic: Callable[[], float] = time.monotonic
) -> int:
    """Folds batches until the stream is empty or the time is up. Returns the rows of all."""
    stop_at, total = monotonic() + longest_run_s, 0
    finish_all_stale_rows(lambda: monotonic() < stop_at)
    while monotonic() < stop_at and (rows := roll_up(limit)):
        total += rows
    return total


def take_and_add(limit: int) -> tuple[int, Place] | None:
    """In a transaction: folds one batch, and holds the consumer's lock until the end of the transaction.

    Returns the batch's rows and the place that all counted rows are at or before; None while another process has the
    lock.
    """
    stretch = take_stretch(CONSUMER, LOG, limit)
    if stretch is None:
        return None
    if stretch.rows:
        add_rows(LogRows.of_stretch(stretch))
    return stretch.rows, stretch.through
