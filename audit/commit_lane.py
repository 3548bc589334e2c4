"""The short way of a batch: from the event loop to the database and back, without changing threads.

Two changes of threads cost a lone call more than the statement itself. So while all is well the loop talks to the
database on a connection that the writer's thread has opened and tried. Whatever is more than sending a batch and
hearing that it is durable goes back to the thread: connecting, trying again, finding the record that cannot be stored.
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
from audit.statement import RecordRefused
from audit.waiting import Waiting, by_id, fail, latest, succeed


class LoopSink(Protocol):
    """A sink that can also be waited for in an event loop, by its socket. One batch at a time."""

    def fileno(self) -> int:
        """The socket."""

    def begin(self, records: Sequence[CallRecord]) -> bool:
        """Send the batch. True if all of it has left, else `flush` is to be called. Raises: as `commit`."""

    def flush(self) -> bool:
        """Send what has not left yet. True if nothing is left."""

    def ended(self) -> bool:
        """True if the batch of `begin` is durable; False while nobody knows. Raises: as `commit`."""

    def close(self) -> None:
        """The connection is given back; never raises."""


@dataclass(slots=True)
class LaneStats:
    """What went the short way."""

    batches: int = 0
    rows: int = 0
    largest_batch: int = 0
    last_commit_ms: float = 0.0
    faults: int = 0  # connections given up


class CommitLane:
    """Commits what is `put`, in batches, in the order it came. Belongs to one event loop.

    `give_back` gets what could not be committed here and is still in time. The lane is then at its end, unless only
    the batch was at fault.
    """

    def __init__(
        self,
        sink: LoopSink,
        loop: asyncio.AbstractEventLoop,
        *,
        give_back: Callable[[Sequence[Waiting], Exception], None],
        stats: LaneStats,
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
        # The driver closes its socket as soon as it finds the connection broken, and the number may then be another's.
        self._socket = os.dup(sink.fileno())
        loop.add_reader(self._socket, self._hear)

    @property
    def waiting(self) -> int:
        """How many records are not under way yet."""
        return len(self._waiting)

    def put(self, waiting: Waiting) -> None:
        """Commit this with whatever else comes in this pass of the loop, or while a batch is under way.

        Where the last one was alone, this one is taken to be: another pass of the loop is time that its caller waits.
        """
        self._waiting.append(waiting)
        if self._batch or self._is_leaving:
            return
        if self._last_size == 1:
            self._leave()
        else:
            self._is_leaving = True
            self.loop.call_soon(self._leave)

    async def aclose(self) -> None:
        """What waits is committed as far as the deadlines allow, and the connection closed."""
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
        except Exception as fault:  # whatever a driver raises
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
        """Something came: the answer, a part of it, or the end of the connection, also while nothing is asked."""
        try:
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
        if isinstance(fault, RecordRefused):  # the connection is well; the thread finds out which record it is
            self._give_back(batch, fault)
            self._next()
        else:
            self._stats.faults += 1
            batch.extend(self._waiting)
            self._end()
            self._give_back(batch, fault)

    def _look_at_deadlines(self) -> None:
        """No answer yet. Records whose time is over fail, also those that are not under way; the rest waits on.

        The answer may come yet, but the callers of the failed ones must not be told so. Once no caller waits, the
        connection is given up.
        """
        now = time.monotonic()
        bridged_until_s = self._began_s + BRIDGED_S
        if now >= bridged_until_s:
            self._outage.unanswered(self._began_s)
        late = [waiting for waiting in (*self._batch, *self._waiting) if waiting.expires_at <= now]
        if late:
            fail([waiting.future for waiting in late], "the audit log did not answer in time")
            self._batch = [waiting for waiting in self._batch if waiting.expires_at > now]
            self._waiting = deque(waiting for waiting in self._waiting if waiting.expires_at > now)
        if self._batch:
            next_s = min(waiting.expires_at for waiting in (*self._batch, *self._waiting))
            if now < bridged_until_s:  # a timer may ring a little early
                next_s = min(next_s, bridged_until_s)
            self._timer = self.loop.call_later(max(0.0, next_s - now), self._look_at_deadlines)
        else:
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
