"""Records that wait for their commit, and who waits for them."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from audit.call_record import UNKNOWN, CallRecord


class AuditUnavailable(Exception):
    """The record is not known to be durable: the call it speaks of must not be answered as if it were. Spec: D80"""


@dataclass(slots=True, eq=False)
class Waiting:
    """A record, and who waits for it where."""

    record: CallRecord
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[None]
    expires_at: float  # on the monotonic clock


def by_id(batch: Sequence[Waiting]) -> dict[uuid.UUID, list[Waiting]]:
    """The batch by record: an intent and its outcome may be in it together."""
    groups: dict[uuid.UUID, list[Waiting]] = {}
    for waiting in batch:
        groups.setdefault(waiting.record.id, []).append(waiting)
    return groups


def latest(group: Sequence[Waiting]) -> CallRecord:
    """Of an intent and its outcome in one batch, the outcome: one statement may touch a row only once."""
    finished = [waiting.record for waiting in group if waiting.record.status != UNKNOWN]
    return finished[0] if finished else group[-1].record


def succeed(futures: Iterable[asyncio.Future[None]]) -> None:
    """Those who still wait may go on. In their loop."""
    for future in futures:
        if not future.done():
            future.set_result(None)


def fail(futures: Iterable[asyncio.Future[None]], reason: str) -> None:
    """Those who still wait learn that their record is not known to be durable. In their loop."""
    for future in futures:
        if not future.done():
            future.set_exception(AuditUnavailable(reason))


def tell(batch: Sequence[Waiting], reason: str | None) -> None:
    """From a thread: wake every waiter, with one call into each loop; with a `reason` as failed."""
    by_loop: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = {}
    for waiting in batch:
        by_loop.setdefault(waiting.loop, []).append(waiting.future)
    for loop, futures in by_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop is closed, and its waiters with it
            if reason is None:
                loop.call_soon_threadsafe(succeed, futures)
            else:
                loop.call_soon_threadsafe(fail, futures, reason)
