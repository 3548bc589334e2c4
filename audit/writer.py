"""Group commit of call records: a call is answered only after its row is durable, and waiting calls share a commit.

   queue --> batch --commit--> durable: callers succeed
               |--RecordRefused--> each record alone; the bad one fails
               |--other fault--> new connection, retry until DEADLINE_S
               '--deadline--> callers fail

One thread owns one connection; records that arrive during a commit form the next batch. A lone record is committed at
once. A connection that works may move to the event loop (`commit_lane`), which returns what fails there.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum, auto

import structlog

from audit.audit_connection import Sink, open_audit_connection
from audit.call_record import CallRecord
from audit.loop_committer import CommitterStats, LoopCommitter
from audit.outage import PROBE_PAUSE_S, Outage
from audit.pending_record import AuditUnavailable, Waiting, by_id, latest, tell
from audit.postgresql_connection import PostgreSQLAuditConnection
from audit.record_deadline import Alarm
from audit.statement import RecordRefused
from audit.writer_stats import WriterStats

__all__ = ["AuditUnavailable", "AuditWriter", "WriterStats"]

DEADLINE_S = 5.0  # from `write` until the caller fails
MAX_BATCH = 512  # records of one transaction
MAX_WAITING = 20_000  # records; write() refuses more
# Between attempts of one batch; doubles up to the longest.
FIRST_PAUSE_S = 0.02
LONGEST_PAUSE_S = 0.5
logger = structlog.get_logger(__name__)


class _Sign(Enum):
    END = auto()
    OUTAGE = auto()  # probe the database


class AuditWriter:
    """Stores call records. One for each process; any event loop or thread may write to it."""

    def __init__(
        self,
        *,
        open_audit_connection: Callable[[], Sink] = open_audit_connection,
        deadline_s: float = DEADLINE_S,
        max_batch: int = MAX_BATCH,
        max_waiting: int = MAX_WAITING,
    ) -> None:
        self._open_sink = open_audit_connection
        self._deadline_s = deadline_s
        self._max_batch = max_batch
        self._max_waiting = max_waiting
        self._sink: Sink | None = None
        self._begin()
        _writers.add(self)

    def _begin(self) -> None:
        self._queue: queue.SimpleQueue[Waiting | _Sign] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._closed = False
        self._stats = WriterStats()
        self._refused = 0
        # Tells whether calls must be refused before they are sent.
        self.outage = Outage()
        self._batch_size = 0
        self._lane: LoopCommitter | None = None
        self._lane_stats = CommitterStats()

    def start(self) -> None:
        with self._lock:
            # The first write() calls this too, so a forked child starts its own thread.
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._run, name="audit-writer", daemon=True)
                self._thread.start()

    async def write(self, record: CallRecord) -> None:
        """Returns once the record is durable. Raises: AuditUnavailable when it is not in time, or cannot be."""
        if self._thread is None:
            self.start()
        if self._closed or self._waiting() >= self._max_waiting:
            self._count_refused(1)
            raise AuditUnavailable("the audit log takes no more records now")
        loop = asyncio.get_running_loop()
        waiting = Waiting(record, loop, loop.create_future(), time.monotonic() + self._deadline_s)
        lane = self._lane
        if lane is not None and lane.loop is loop:
            lane.put(waiting)
        else:
            self._put(waiting)
        # A cancelled caller stops waiting; its record is committed all the same.
        await waiting.future

    def refuse_during_outage(self) -> None:
        """Raises: AuditUnavailable while a call's record could not be committed anyway."""
        if self.outage.is_away:
            raise AuditUnavailable("the audit log has been away for a while")

    async def aclose(self) -> None:
        """Commits what the deadlines allow, then closes the connection; write() then raises."""
        with self._lock:
            self._closed = True
            thread, lane = self._thread, self._lane
        if lane is not None and lane.loop is asyncio.get_running_loop():
            await lane.aclose()
            self._lane = None
        if thread is not None:
            self._queue.put(_Sign.END)
            await asyncio.to_thread(thread.join, self._deadline_s + 1)

    def stats(self) -> WriterStats:
        stats = replace(self._stats, refused=self._refused, waiting=self._waiting())
        return stats.with_lane(self._lane_stats, is_open=self._lane is not None)

    def abandon(self) -> None:
        # In a forked child: kept alive and unused, because closing the connection would end the parent's.
        _abandoned.extend([self._sink, self._lane])
        self._sink = None
        self._begin()

    def _waiting(self) -> int:
        lane = self._lane
        return self._queue.qsize() + (lane.waiting if lane is not None else 0)

    def _put(self, waiting: Waiting) -> None:
        # The thread looks at deadlines only between attempts.
        Alarm(waiting, self.outage, waiting.expires_at - self._deadline_s)
        self._queue.put(waiting)

    def _adopt(self, sink: PostgreSQLAuditConnection, loop: asyncio.AbstractEventLoop) -> None:
        """Runs in the loop: its records take the short path from now on."""
        if self._closed or self._lane is not None:
            sink.close()
            return
        self._lane = LoopCommitter(
            *(sink, loop),
            give_back=self._take_back,
            stats=self._lane_stats,
            outage=self.outage,
            max_batch=self._max_batch,
            deadline_s=self._deadline_s,
        )

    def _take_back(self, batch: Sequence[Waiting], fault: Exception) -> None:
        """Runs in the loop: the thread commits the records that the lane could not."""
        if self._lane is not None and not self._lane.is_open:
            self._lane = None
            logger.warning("audit.connection_lost", fault=type(fault).__name__)
            self._queue.put(_Sign.OUTAGE)
        for waiting in batch:
            self._put(waiting)

    # --- from here on: in the thread -------------------------------------------------------------------------------

    def _run(self) -> None:
        while batch := self._next_batch():
            try:
                self._commit(batch)
            except Exception:
                # A bug must not end the thread: every later call would be refused until a restart.
                logger.exception("audit.batch_failed", records=len(batch))
                self._refuse(batch, "the audit log failed")
            else:
                self._hand_over(batch[-1].loop)
        self._drop_sink()
        while not self._queue.empty():
            late = self._queue.get()
            if isinstance(late, Waiting):
                self._refuse([late], "the audit log is closed")

    def _next_batch(self) -> list[Waiting]:
        """Returns all waiting records up to the largest batch, and none at the end. Blocks."""
        batch: list[Waiting] = []
        while len(batch) < self._max_batch and not (batch and self._queue.empty()):
            waiting = self._next()
            if waiting is _Sign.END:
                if batch:
                    self._queue.put(waiting)  # this batch first
                break
            if not isinstance(waiting, Waiting):
                continue
            batch.append(waiting)
            if len(batch) == 1 and self._batch_size > 1 and self._sink is not None:
                # While records come several at a time, a short wait makes the batch larger. A lone one never waits.
                time.sleep(self._sink.gather_s)
        self._batch_size = len(batch)
        return batch

    def _next(self) -> Waiting | _Sign:
        while self.outage.is_away and self._lane is None:
            with contextlib.suppress(queue.Empty):
                return self._queue.get(timeout=PROBE_PAUSE_S)
            # Without records, only a probe shows that the database is back.
            self._probe()
        return self._queue.get()

    def _probe(self) -> None:
        try:
            if self._sink is None:
                self._sink = self._open_sink()
            self._sink.probe()
        except Exception as fault:  # any driver error
            self._note_fault(fault)
        else:
            self.outage.probed()

    def _commit(self, batch: list[Waiting]) -> None:
        pause_s = FIRST_PAUSE_S
        while batch := self._in_time(batch):
            groups = by_id(batch)
            try:
                self._keep([latest(group) for group in groups.values()])
            except RecordRefused as fault:
                if len(groups) > 1:
                    for group in groups.values():
                        self._commit(group)
                else:
                    logger.error("audit.record_refused", record_id=str(batch[0].record.id), reason=str(fault))
                    self._refuse(batch, "the audit log cannot store this record")
                return
            except Exception as fault:  # any driver error: the connection is no longer trusted
                self._note_fault(fault)
                time.sleep(max(0.0, min(pause_s, batch[-1].expires_at - time.monotonic())))
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            else:
                tell(batch, None)
                return

    def _keep(self, records: Sequence[CallRecord]) -> None:
        if self._sink is None:
            self._sink = self._open_sink()
        began = time.perf_counter()
        self._sink.commit(records)
        stats = self._stats
        self._stats = replace(
            stats,
            batches=stats.batches + 1,
            rows=stats.rows + len(records),
            largest_batch=max(stats.largest_batch, len(records)),
            last_commit_ms=(time.perf_counter() - began) * 1000,
        )
        self.outage.committed()

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        sink = self._sink
        if self._lane is not None or self._closed or not isinstance(sink, PostgreSQLAuditConnection):
            return
        # A connection moves only while no record waits for it.
        if self._queue.empty():
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._adopt, sink, loop)
                self._sink = None

    def _note_fault(self, fault: Exception) -> None:
        self._drop_sink()
        self._stats = replace(self._stats, faults=self._stats.faults + 1)
        self.outage.failed(fault)

    def _drop_sink(self) -> None:
        sink, self._sink = self._sink, None
        if sink is not None:
            sink.close()

    def _in_time(self, batch: list[Waiting]) -> list[Waiting]:
        now = time.monotonic()
        if late := [waiting for waiting in batch if waiting.expires_at <= now]:
            self._refuse(late, "the audit log did not answer in time")
            return [waiting for waiting in batch if waiting.expires_at > now]
        return batch

    def _refuse(self, batch: Sequence[Waiting], reason: str) -> None:
        self._count_refused(len(batch))
        tell(batch, reason)

    def _count_refused(self, count: int) -> None:
        with self._lock:  # event loops and the thread both count
            self._refused += count


_writers: weakref.WeakSet[AuditWriter] = weakref.WeakSet()
_abandoned: list[Sink | LoopCommitter | None] = []


def _begin_again_after_fork() -> None:
    # A child has none of its parent's threads.
    for writer in _writers:
        writer.abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_again_after_fork)
