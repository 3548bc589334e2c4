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
from dataclasses import dataclass
from typing import Protocol

from audit.call_record import CallRecord
from audit.outage import BRIDGED_S, Outage
from audit.pending_record import Waiting, by_id, fail, latest, succeed
from audit.statement import RecordRefused


class LoopConnection(Protocol):
    """A sink that an event loop can wait for, one batch at a time."""

    def fileno(self) -> int:
        """The socket."""

    def begin(self, records: Sequence[CallRecord]) -> bool:
        """Returns False when `flush` must send the rest. Raises: like `commit`."""

    def flush(self) -> bool:
        """Returns True when nothing is left to send."""

    def ended(self) -> bool:
        """Returns True once the batch is durable. Raises: like `commit`."""

    def close(self) -> None:
        """Never raises."""


@dataclass(slots=True)
class CommitterStats:
    batches: int = 0
    rows: int = 0
    largest_batch: int = 0
    last_commit_ms: float = 0.0
    faults: int = 0  # closed connections


class LoopCommitter:
    """Commits records in batches, in order. Belongs to one event loop.

    `give_back` gets the unexpired records that the lane could not commit. The lane is then closed, unless only a record
    was at fault.
    """

    def __init__(
        self,
        sink: LoopConnection,
        loop: asyncio.AbstractEventLoop,
        *,
        give_back: Callable[[Sequence[Waiting], Exception], None],
        stats: CommitterStats,
        outage: Outage,
        max_batch: int,
        deadline_s: float,
    ) -> None:
        self.loop = loop
        self.is_open = True
        self._sink = sink
        self._give_back = give_back
        self._stats = stats
        self._outage = outage
        self._max_batch = max_batch
        self._deadline_s = deadline_s
        self._waiting: deque[Waiting] = deque()
        self._batch: list[Waiting] = []
        self._is_leaving = False
        self._last_size = 0
        self._began_s = 0.0
        self._timer: asyncio.TimerHandle | None = None
        # The driver closes its socket when the connection breaks, and the number may then belong to another one.
        self._socket = os.dup(sink.fileno())
        loop.add_reader(self._socket, self._hear)

    @property
    def waiting(self) -> int:
        # Without the records of the batch under way.
        return len(self._waiting)

    def put(self, waiting: Waiting) -> None:
        self._waiting.append(waiting)
        if self._batch or self._is_leaving:
            return
        # After a lone record the next one counts as lone too: another pass of the loop would delay its caller.
        if self._last_size == 1:
            self._leave()
        else:
            self._is_leaving = True
            # The batch takes what else comes in this pass of the loop.
            self.loop.call_soon(self._leave)

    async def aclose(self) -> None:
        """Commits what the deadlines allow, then closes the connection."""
        if futures := [waiting.future for waiting in (*self._batch, *self._waiting)]:
            await asyncio.wait(futures, timeout=self._deadline_s)
            fail(futures, "the audit log is closed")
        self._end()

    def _leave(self) -> None:
        self._is_leaving = False
        if not self.is_open:
            return
        waiting, batch = self._waiting, self._batch
        while waiting and len(batch) < self._max_batch:
            batch.append(waiting.popleft())
        self._last_size = len(batch)
        self._began_s = time.monotonic()
        try:
            is_sent = self._sink.begin([latest(group) for group in by_id(batch).values()])
        except Exception as fault:  # any driver error
            self._failed(fault)
            return
        left_s = batch[0].expires_at - self._began_s
        self._timer = self.loop.call_later(min(BRIDGED_S, left_s), self._look_at_deadlines)
        if not is_sent:
            self.loop.add_writer(self._socket, self._go_on_sending)

    def _go_on_sending(self) -> None:
        try:
            if self._sink.flush():
                self.loop.remove_writer(self._socket)
        except Exception as fault:
            self._failed(fault)

    def _hear(self) -> None:
        try:
            # The socket is readable for a response, a part of one, or the end of an idle connection.
            if not self._sink.ended():
                return
        except Exception as fault:
            self._failed(fault)
            return
        batch = self._take_batch()
        stats = self._stats
        stats.batches += 1
        stats.rows += len(batch)
        stats.largest_batch = max(stats.largest_batch, len(batch))
        stats.last_commit_ms = (time.monotonic() - self._began_s) * 1000
        self._outage.committed()
        succeed([waiting.future for waiting in batch])
        self._next()

    def _failed(self, fault: Exception) -> None:
        batch = self._take_batch()
        if isinstance(fault, RecordRefused):  # the connection works; the thread finds the bad record
            self._give_back(batch, fault)
            self._next()
        else:
            self._stats.faults += 1
            batch.extend(self._waiting)
            self._end()
            self._give_back(batch, fault)

    def _look_at_deadlines(self) -> None:
        now = time.monotonic()
        bridged_until_s = self._began_s + BRIDGED_S
        if now >= bridged_until_s:
            self._outage.unanswered(self._began_s)
        late = [waiting for waiting in (*self._batch, *self._waiting) if waiting.expires_at <= now]
        if late:
            # These callers are refused for good, even if the response still comes.
            fail([waiting.future for waiting in late], "the audit log did not answer in time")
            self._batch = [waiting for waiting in self._batch if waiting.expires_at > now]
            self._waiting = deque(waiting for waiting in self._waiting if waiting.expires_at > now)
        if self._batch:
            next_s = min(waiting.expires_at for waiting in (*self._batch, *self._waiting))
            if now < bridged_until_s:  # a timer may fire slightly early
                next_s = min(next_s, bridged_until_s)
            self._timer = self.loop.call_later(max(0.0, next_s - now), self._look_at_deadlines)
        else:
            # No caller waits any more, so the connection is given up.
            self._failed(TimeoutError("no answer"))

    def _take_batch(self) -> list[Waiting]:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        batch, self._batch = self._batch, []
        return batch

    def _next(self) -> None:
        if self._waiting and not self._is_leaving:
            self._leave()

    def _end(self) -> None:
        if not self.is_open:
            return
        self.is_open = False
        self._waiting.clear()
        if self._timer is not None:
            self._timer.cancel()
        if not self.loop.is_closed():
            self.loop.remove_reader(self._socket)
            self.loop.remove_writer(self._socket)
        os.close(self._socket)
        self._sink.close()
