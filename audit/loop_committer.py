"""The short path of a batch: the event loop commits it without a change of threads.

   idle --put--> leaving --begin, flush--> under way --ended--> idle
                                             |--RecordRefused--> batch given back, idle
                                             '--fault or no caller left--> all given back, closed

Two changes of threads cost a lone call more than the statement. So the loop uses a connection that the writer's thread
has opened and tried. The thread keeps all other work: connecting, retrying, finding a record that cannot be stored.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Callable, Sequence

from audit.audit_connection import LoopConnection
from audit.outage import GRACE_S, Outage
from audit.pending_record import PendingRecord, fail, group_by_id, latest, succeed
from audit.statement import RecordRefused


class LoopCommitter:
    """Commits records in batches, in order. Belongs to one event loop.

    `on_uncommitted` gets the unexpired records that this committer could not commit. This committer is then closed,
    unless only a record was at fault.
    """

    def __init__(
        self,
        connection: LoopConnection,
        loop: asyncio.AbstractEventLoop,
        *,
        on_uncommitted: Callable[[Sequence[PendingRecord], Exception], None],
        outage: Outage,
        max_batch: int,
        deadline_s: float,
    ) -> None:
        self.loop = loop
        self.is_open = True
        self._connection = connection
        self._on_uncommitted = on_uncommitted
        self._outage = outage
        self._max_batch = max_batch
        self._deadline_s = deadline_s
        self._pending: deque[PendingRecord] = deque()
        self._batch: list[PendingRecord] = []
        self._is_flush_scheduled = False
        self._last_size = 0
        self._began_s = 0.0
        self._timer: asyncio.TimerHandle | None = None
        # The driver closes its socket when the connection breaks, and the number may then belong to another one.
        self._socket = os.dup(connection.fileno())
        loop.add_reader(self._socket, self._on_readable)

    @property
    def pending_count(self) -> int:
        # Without the records of the batch under way.
        return len(self._pending)

    def put(self, pending: PendingRecord) -> None:
        self._pending.append(pending)
        if self._batch or self._is_flush_scheduled:
            return
        # After a lone record the next one counts as lone too: another pass of the loop would delay its caller.
        if self._last_size == 1:
            self._flush()
        else:
            self._is_flush_scheduled = True
            # The batch takes what else comes in this pass of the loop.
            self.loop.call_soon(self._flush)

    async def aclose(self) -> None:
        """Commits what the deadlines allow, then closes the connection."""
        if futures := [pending.future for pending in (*self._batch, *self._pending)]:
            await asyncio.wait(futures, timeout=self._deadline_s)
            fail(futures, "the audit log is closed")
        self._end()

    def _flush(self) -> None:
        self._is_flush_scheduled = False
        if not self.is_open:
            return
        pending, batch = self._pending, self._batch
        while pending and len(batch) < self._max_batch:
            batch.append(pending.popleft())
        self._last_size = len(batch)
        self._began_s = time.monotonic()
        try:
            is_sent = self._connection.start_commit([latest(group) for group in group_by_id(batch).values()])
        except Exception as fault:  # any driver error
            self._failed(fault)
            return
        left_s = batch[0].expires_at - self._began_s
        self._timer = self.loop.call_later(min(GRACE_S, left_s), self._on_timer)
        if not is_sent:
            self.loop.add_writer(self._socket, self._on_writable)

    def _on_writable(self) -> None:
        try:
            if self._connection.flush():
                self.loop.remove_writer(self._socket)
        except Exception as fault:
            self._failed(fault)

    def _on_readable(self) -> None:
        try:
            # The socket is readable for a response, a part of one, or the end of an idle connection.
            if not self._connection.poll_commit():
                return
        except Exception as fault:
            self._failed(fault)
            return
        batch = self._pop_batch()
        self._outage.committed()
        succeed([pending.future for pending in batch])
        self._next()

    def _failed(self, fault: Exception) -> None:
        batch = self._pop_batch()
        if isinstance(fault, RecordRefused):  # the connection works; the thread finds the bad record
            self._on_uncommitted(batch, fault)
            self._next()
        else:
            batch.extend(self._pending)
            self._end()
            self._on_uncommitted(batch, fault)

    def _on_timer(self) -> None:
        now = time.monotonic()
        grace_until_s = self._began_s + GRACE_S
        if now >= grace_until_s:
            self._outage.unanswered(self._began_s)
        expired = [pending for pending in (*self._batch, *self._pending) if pending.expires_at <= now]
        if expired:
            # These callers are refused for good, even if the response still comes.
            fail([pending.future for pending in expired], "the audit log did not answer in time")
            self._batch = [pending for pending in self._batch if pending.expires_at > now]
            self._pending = deque(pending for pending in self._pending if pending.expires_at > now)
        if self._batch:
            next_s = min(pending.expires_at for pending in (*self._batch, *self._pending))
            if now < grace_until_s:  # a timer may fire slightly early
                next_s = min(next_s, grace_until_s)
            self._timer = self.loop.call_later(max(0.0, next_s - now), self._on_timer)
        else:
            # No caller waits any more, so the connection is given up.
            self._failed(TimeoutError("no answer"))

    def _pop_batch(self) -> list[PendingRecord]:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        batch, self._batch = self._batch, []
        return batch

    def _next(self) -> None:
        if self._pending and not self._is_flush_scheduled:
            self._flush()

    def _end(self) -> None:
        if not self.is_open:
            return
        self.is_open = False
        self._pending.clear()
        if self._timer is not None:
            self._timer.cancel()
        if not self.loop.is_closed():
            self.loop.remove_reader(self._socket)
            self.loop.remove_writer(self._socket)
        os.close(self._socket)
        self._connection.close()
