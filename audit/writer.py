"""Group commit of call records: a call is answered only after its row is durable, and waiting calls share a commit.

   queue --> batch --commit--> durable: callers succeed
               |--RecordRefused--> each record alone; the bad one fails
               |--other fault--> new connection, retry until DEADLINE_S
               '--deadline--> callers fail

One thread owns one connection; records that arrive during a commit form the next batch. A lone record is committed at
once. A connection that works may move to the event loop (`loop_committer`), which returns what fails there.
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
from enum import Enum, auto

import structlog

from audit.audit_connection import AuditConnection, LoopConnection, open_audit_connection
from audit.call_record import CallRecord
from audit.loop_committer import LoopCommitter
from audit.outage import PROBE_PAUSE_S, Outage
from audit.pending_record import AuditUnavailable, PendingRecord, group_by_id, latest, notify
from audit.record_deadline import RecordDeadline
from audit.statement import RecordRefused

DEADLINE_S = 5.0  # from `write` until the caller fails
MAX_BATCH = 512  # records of one transaction
MAX_PENDING = 20_000  # records; write() refuses more
# Between attempts of one batch; doubles up to the longest.
FIRST_PAUSE_S = 0.02
LONGEST_PAUSE_S = 0.5
logger = structlog.get_logger(__name__)


class _Signal(Enum):
    END = auto()
    OUTAGE = auto()  # probe the database


class AuditWriter:
    """Stores call records. One for each process; any event loop or thread may write to it."""

    def __init__(
        self,
        *,
        open_connection: Callable[[], AuditConnection] = open_audit_connection,
        deadline_s: float = DEADLINE_S,
        max_batch: int = MAX_BATCH,
        max_pending: int = MAX_PENDING,
    ) -> None:
        self._open_connection = open_connection
        self._deadline_s = deadline_s
        self._max_batch = max_batch
        self._max_pending = max_pending
        self._connection: AuditConnection | None = None
        self._reset()
        _writers.add(self)

    def _reset(self) -> None:
        self._queue: queue.SimpleQueue[PendingRecord | _Signal] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._closed = False
        # Tells whether calls must be refused before they are sent.
        self.outage = Outage()
        self._batch_size = 0
        self._committer: LoopCommitter | None = None

    @property
    def pending_count(self) -> int:
        # Without the records of the batch under way.
        committer = self._committer
        return self._queue.qsize() + (committer.pending_count if committer is not None else 0)

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
        if self._closed or self.pending_count >= self._max_pending:
            raise AuditUnavailable("the audit log takes no more records now")
        loop = asyncio.get_running_loop()
        pending = PendingRecord(record, loop, loop.create_future(), time.monotonic() + self._deadline_s)
        committer = self._committer
        if committer is not None and committer.loop is loop:
            committer.put(pending)
        else:
            self._enqueue(pending)
        # A cancelled caller stops waiting; its record is committed all the same.
        await pending.future

    def refuse_during_outage(self) -> None:
        """Raises: AuditUnavailable while a call's record could not be committed anyway."""
        if self.outage.is_active:
            raise AuditUnavailable("the audit log has been away for a while")

    async def aclose(self) -> None:
        """Commits what the deadlines allow, then closes the connection; write() then raises."""
        with self._lock:
            self._closed = True
            thread, committer = self._thread, self._committer
        if committer is not None and committer.loop is asyncio.get_running_loop():
            await committer.aclose()
            self._committer = None
        if thread is not None:
            self._queue.put(_Signal.END)
            await asyncio.to_thread(thread.join, self._deadline_s + 1)

    def reset_after_fork(self) -> None:
        # In a forked child: kept alive and unused, because closing the connection would end the parent's.
        _abandoned.extend([self._connection, self._committer])
        self._connection = None
        self._reset()

    def _enqueue(self, pending: PendingRecord) -> None:
        # The thread looks at deadlines only between attempts.
        RecordDeadline(pending, self.outage, pending.expires_at - self._deadline_s)
        self._queue.put(pending)

    def _attach_committer(self, connection: LoopConnection, loop: asyncio.AbstractEventLoop) -> None:
        """Runs in the loop: its records take the short path from now on."""
        if self._closed or self._committer is not None:
            connection.close()
            return
        self._committer = LoopCommitter(
            *(connection, loop),
            on_uncommitted=self._on_uncommitted,
            outage=self.outage,
            max_batch=self._max_batch,
            deadline_s=self._deadline_s,
        )

    def _on_uncommitted(self, batch: Sequence[PendingRecord], fault: Exception) -> None:
        """Runs in the loop: the thread commits the records that the loop committer could not."""
        if self._committer is not None and not self._committer.is_open:
            self._committer = None
            logger.warning("audit.connection_lost", fault=type(fault).__name__)
            self._queue.put(_Signal.OUTAGE)
        for pending in batch:
            self._enqueue(pending)

    # --- from here on: in the thread -------------------------------------------------------------------------------

    def _run(self) -> None:
        while batch := self._next_batch():
            try:
                self._commit(batch)
            except Exception:
                # A bug must not end the thread: every later call would be refused until a restart.
                logger.exception("audit.batch_failed", records=len(batch))
                notify(batch, "the audit log failed")
            else:
                self._offer_to_loop(batch[-1].loop)
        self._drop_connection()
        while not self._queue.empty():
            expired = self._queue.get()
            if isinstance(expired, PendingRecord):
                notify([expired], "the audit log is closed")

    def _next_batch(self) -> list[PendingRecord]:
        """Returns all waiting records up to the largest batch, and none at the end. Blocks."""
        batch: list[PendingRecord] = []
        while len(batch) < self._max_batch and not (batch and self._queue.empty()):
            pending = self._next()
            if pending is _Signal.END:
                if batch:
                    self._queue.put(pending)  # this batch first
                break
            if not isinstance(pending, PendingRecord):
                continue
            batch.append(pending)
            if len(batch) == 1 and self._batch_size > 1 and self._connection is not None:
                # While records come several at a time, a short wait makes the batch larger. A lone one never waits.
                time.sleep(self._connection.gather_s)
        self._batch_size = len(batch)
        return batch

    def _next(self) -> PendingRecord | _Signal:
        while self.outage.is_active and self._committer is None:
            with contextlib.suppress(queue.Empty):
                return self._queue.get(timeout=PROBE_PAUSE_S)
            # Without records, only a probe shows that the database is back.
            self._probe()
        return self._queue.get()

    def _probe(self) -> None:
        try:
            if self._connection is None:
                self._connection = self._open_connection()
            self._connection.probe()
        except Exception as fault:  # any driver error
            self._record_fault(fault)
        else:
            self.outage.probed()

    def _commit(self, batch: list[PendingRecord]) -> None:
        pause_s = FIRST_PAUSE_S
        while batch := self._fail_expired(batch):
            groups = group_by_id(batch)
            try:
                self._insert([latest(group) for group in groups.values()])
            except RecordRefused as fault:
                if len(groups) > 1:
                    for group in groups.values():
                        self._commit(group)
                else:
                    logger.error("audit.record_refused", record_id=str(batch[0].record.id), reason=str(fault))
                    notify(batch, "the audit log cannot store this record")
                return
            except Exception as fault:  # any driver error: the connection is no longer trusted
                self._record_fault(fault)
                time.sleep(max(0.0, min(pause_s, batch[-1].expires_at - time.monotonic())))
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            else:
                notify(batch, None)
                return

    def _insert(self, records: Sequence[CallRecord]) -> None:
        if self._connection is None:
            self._connection = self._open_connection()
        self._connection.commit(records)
        self.outage.committed()

    def _offer_to_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._committer is not None or self._closed or self._connection is None:
            return
        connection = self._connection.for_loop()
        if connection is None:
            return
        # A connection moves only while no record waits for it.
        if self._queue.empty():
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._attach_committer, connection, loop)
                self._connection = None

    def _record_fault(self, fault: Exception) -> None:
        self._drop_connection()
        self.outage.failed(fault)

    def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _fail_expired(self, batch: list[PendingRecord]) -> list[PendingRecord]:
        now = time.monotonic()
        if expired := [pending for pending in batch if pending.expires_at <= now]:
            notify(expired, "the audit log did not answer in time")
            return [pending for pending in batch if pending.expires_at > now]
        return batch


_writers: weakref.WeakSet[AuditWriter] = weakref.WeakSet()
_abandoned: list[AuditConnection | LoopCommitter | None] = []


def _reset_after_fork() -> None:
    # A child has none of its parent's threads.
    for writer in _writers:
        writer.reset_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
