"""Counts rate-limited calls in memory and writes the counts to their audit rows about once a second. Spec: D80, D146"""

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

from audit import rate_limited_rows as rows
from audit.call_record import CallRecord
from gateway.lib import clock, ids
from proxy.caller_cache import CallerCache
from proxy.hot_path_database import DatabaseUnavailable

# The first refused call of a subject, organization and minute waits for its row. Later ones only count, so that a flood
# of refusals costs no statement each. A killed process loses at most the counts of its last second, never the row.
FLUSH_EVERY_S = 1.0
log = structlog.get_logger(__name__)
Build = Callable[[uuid.UUID, datetime], CallRecord]


@dataclass(slots=True, eq=False)
class _Minute:
    """One row's counts in this process: `calls` refused, `written` of them known to be in the database."""

    record: CallRecord
    minute: int
    part: str
    calls: int = 0
    written: int = 0
    first_write: asyncio.Task[None] | None = None


class RateLimitedCalls:
    """The refused calls of one event loop."""

    def __init__(self, caller_cache: CallerCache, *, now: Callable[[], datetime] = clock.now) -> None:
        self._caller_cache = caller_cache
        self._now = now
        self._minutes: dict[tuple[uuid.UUID, str, int], _Minute] = {}
        self._flushing: asyncio.Task[None] | None = None
        # A separate thread, so that loading callers never waits for counts.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="rate-limited-calls")

    async def record(self, org_id: uuid.UUID, subject: str, build: Build) -> None:
        """Count a refused call; `build` makes the row of the minute's first. Raises: DatabaseUnavailable."""
        minute = rows.minute_of(self._now())
        key = (org_id, subject, minute)
        entry = self._minutes.get(key)
        if entry is None:
            began_at = datetime.fromtimestamp(minute * rows.MINUTE_S, UTC)
            record = build(rows.row_id(org_id, subject, minute), began_at)
            entry = self._minutes[key] = _Minute(record, minute, ids.new_id().hex)
            # If this row cannot be committed, the next call tries again.
            entry.first_write = asyncio.ensure_future(self._begin(key, entry))
            entry.first_write.add_done_callback(_retrieve_exception)
        entry.calls += 1
        if entry.first_write is not None:
            await asyncio.shield(entry.first_write)
        if self._flushing is None or self._flushing.done():
            self._flushing = asyncio.ensure_future(self._flush_until_written())

    async def flush(self) -> None:
        for key, entry in list(self._minutes.items()):
            if entry.first_write is None and entry.calls > entry.written:
                calls = entry.calls
                await self._caller_cache.run_in_db_thread(
                    partial(rows.upsert_part, entry.record, entry.part, calls), self._thread
                )
                entry.written = calls
            if entry.minute < rows.minute_of(self._now()) and entry.written == entry.calls:
                self._minutes.pop(key, None)

    async def aclose(self) -> None:
        if self._flushing is not None:
            self._flushing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._flushing
        writes = [entry.first_write for entry in self._minutes.values() if entry.first_write is not None]
        if writes:
            await asyncio.wait(writes)
        try:
            await self.flush()
        except DatabaseUnavailable as fault:
            log.error("counts of rate-limited calls are lost", fault=str(fault), rows=len(self._minutes))
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _begin(self, key: tuple[uuid.UUID, str, int], entry: _Minute) -> None:
        try:
            await self._caller_cache.run_in_db_thread(partial(rows.upsert_part, entry.record, entry.part, 1))
        except BaseException:
            del self._minutes[key]
            raise
        entry.written, entry.first_write = 1, None

    async def _flush_until_written(self) -> None:
        while self._minutes:  # until the minute is over
            await asyncio.sleep(FLUSH_EVERY_S)
            try:
                await self.flush()
            except DatabaseUnavailable as fault:
                log.warning("rate-limited calls not counted yet", fault=str(fault))


def _retrieve_exception(write: asyncio.Task[None]) -> None:
    # Retrieve the exception: asyncio logs unretrieved ones, and all waiters may be gone.
    if not write.cancelled():
        write.exception()
