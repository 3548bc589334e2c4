"""Records that wait for their commit, with the futures of their callers."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Iterable, Sequence

import msgspec

from audit.call_record import UNKNOWN, CallRecord


class AuditUnavailable(Exception):
    """The record may not be durable, so its call must not be answered as if it were. Spec: D80"""


class PendingRecord(msgspec.Struct, eq=False):
    record: CallRecord
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[None]
    expires_at: float  # on the monotonic clock


def group_by_id(batch: Sequence[PendingRecord]) -> dict[uuid.UUID, list[PendingRecord]]:
    groups: dict[uuid.UUID, list[PendingRecord]] = {}
    for pending in batch:
        # An intent and its outcome may share a batch.
        groups.setdefault(pending.record.id, []).append(pending)
    return groups


def latest(group: Sequence[PendingRecord]) -> CallRecord:
    # The outcome wins over its intent: one statement may write a row only once.
    finished = [pending.record for pending in group if pending.record.status != UNKNOWN]
    return finished[0] if finished else group[-1].record


def succeed(futures: Iterable[asyncio.Future[None]]) -> None:
    """Must run in the futures' loop."""
    for future in futures:
        if not future.done():
            future.set_result(None)


def fail(futures: Iterable[asyncio.Future[None]], reason: str) -> None:
    """Must run in the futures' loop."""
    for future in futures:
        if not future.done():
            future.set_exception(AuditUnavailable(reason))


def notify(batch: Sequence[PendingRecord], reason: str | None) -> None:
    """Wakes every waiter, with one call into each loop; `reason` makes them fail. Runs in any thread."""
    by_loop: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = {}
    for pending in batch:
        by_loop.setdefault(pending.loop, []).append(pending.future)
    for loop, futures in by_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop is closed, and its waiters with it
            if reason is None:
                loop.call_soon_threadsafe(succeed, futures)
            else:
                loop.call_soon_threadsafe(fail, futures, reason)
