"""Counts rate-limited calls in memory, and brings the counts to their rows about once a second.

The first call of a subject, organization and minute waits for its row as every call does. Those after it wait for
nothing: a flood of refusals costs no statement for each. A process that is killed loses the counts of its last second,
never the row.   Spec: D80, D146
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

import structlog

from audit import rate_limited_calls as rows
from audit.call_record import CallRecord
from gateway.lib import clock, ids
from proxy.snapshot import Snapshots, SnapshotUnavailable

FLUSH_EVERY_S = 1.0
log = structlog.get_logger(__name__)
Build = Callable[[uuid.UUID, datetime], CallRecord]


@dataclass(slots=True, eq=False)
class _Minute:
    """This process's part of one row: calls refused, and how many of them the row is known to count."""

    record: CallRecord
    minute: int
    part: str
    calls: int = 0
    kept: int = 0
    first_write: asyncio.Task[None] | None = None


class RateLimitedCalls:
    """The refused calls of one event loop."""

    def __init__(self, snapshots: Snapshots, *, now: Callable[[], datetime] = clock.now) -> None:
        self._snapshots = snapshots
        self._now = now
        self._minutes: dict[tuple[uuid.UUID, str, int], _Minute] = {}
        self._flushing: asyncio.Task[None] | None = None
        # A thread apart: loading callers must not wait behind counts.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="rate-limited-calls")

    async def note(self, org_id: uuid.UUID, subject: str, build: Build) -> None:
        """One call was refused; `build` makes the row of the minute's first one.

        Raises: SnapshotUnavailable when that row cannot be committed; the next call tries again.
        """
        minute = rows.minute_of(self._now())
        key = (org_id, subject, minute)
        noted = self._minutes.get(key)
        if noted is None:
            began_at = datetime.fromtimestamp(minute * rows.MINUTE_S, UTC)
            record = build(rows.row_id(org_id, subject, minute), began_at)
            noted = self._minutes[key] = _Minute(record, minute, ids.new_id().hex)
            noted.first_write = asyncio.ensure_future(self._begin(key, noted))
            noted.first_write.add_done_callback(_look_at_fault)
        noted.calls += 1
        if noted.first_write is not None:
            await asyncio.shield(noted.first_write)
        if self._flushing is None or self._flushing.done():
            self._flushing = asyncio.ensure_future(self._flush_until_kept())

    async def flush(self) -> None:
        """Bring every noted call to its row, as far as the database can be asked."""
        for key, noted in list(self._minutes.items()):
            if noted.first_write is None and noted.calls > noted.kept:
                calls = noted.calls
                await self._snapshots.run(partial(rows.keep_part, noted.record, noted.part, calls), self._thread)
                noted.kept = calls
            if noted.minute < rows.minute_of(self._now()) and noted.kept == noted.calls:
                self._minutes.pop(key, None)

    async def aclose(self) -> None:
        """The counts are in their rows, as far as the database can be asked."""
        if self._flushing is not None:
            self._flushing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._flushing
        writes = [noted.first_write for noted in self._minutes.values() if noted.first_write is not None]
        if writes:
            await asyncio.wait(writes)
        try:
            await self.flush()
        except SnapshotUnavailable as fault:
            log.error("counts of rate-limited calls are lost", fault=str(fault), rows=len(self._minutes))
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _begin(self, key: tuple[uuid.UUID, str, int], noted: _Minute) -> None:
        try:
            await self._snapshots.run(partial(rows.keep_part, noted.record, noted.part, 1))
        except BaseException:
            del self._minutes[key]
            raise
        noted.kept, noted.first_write = 1, None

    async def _flush_until_kept(self) -> None:
        while self._minutes:  # until the minute is over
            await asyncio.sleep(FLUSH_EVERY_S)
            try:
                await self.flush()
            except SnapshotUnavailable as fault:
                log.warning("rate-limited calls not counted yet", fault=str(fault))


def _look_at_fault(write: asyncio.Task[None]) -> None:
    """Look at the fault: asyncio complains about unread ones, and all waiters may have left."""
    if not write.cancelled():
        write.exception()
