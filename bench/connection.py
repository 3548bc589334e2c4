"""The load generator's connections, and what they count."""

from __future__ import annotations

import asyncio
import contextlib
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from typing import cast

import httptools

DRAIN_TIMEOUT_S = 20.0
SAMPLE_BYTES = 300
SHORTEST_WAIT_S = 0.0005


class Tally:
    """Counts over all connections of a job."""

    def __init__(self) -> None:
        self.is_sending = True
        self.is_measuring = False
        self.sent = self.good = self.bad = self.answered = 0
        self.waiting = 0
        self.idle = asyncio.Event()
        self.latencies_s = array("d")
        self.sample = ""

    def record(self, seconds: float, status: int, body: bytes, mark: bytes) -> None:
        """One answer: counted as good only with its own mark in it."""
        self.answered += 1
        if status != 200 or mark not in body:
            self._record_bad(f"{status} {body[:SAMPLE_BYTES]!r}")
        elif self.is_measuring:
            self.good += 1
            self.latencies_s.append(seconds)

    def change_waiting(self, change: int) -> None:
        """One more call is under way, or one less."""
        self.waiting += change
        if not self.waiting and not self.is_sending:
            self.idle.set()

    def end(self) -> None:
        """No more is sent."""
        self.is_sending = False
        self.change_waiting(0)

    async def drain(self) -> None:
        """No more is sent, and what is under way is answered, or DRAIN_TIMEOUT_S over."""
        self.end()
        await self.wait_idle(DRAIN_TIMEOUT_S)

    async def wait_idle(self, timeout_s: float) -> None:
        """All that was sent is answered, and no more is sent; or the time is over."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self.idle.wait()

    def record_broken(self, reason: str) -> None:
        """A connection that ended or spoke no HTTP."""
        self._record_bad(reason)

    def _record_bad(self, sample: str) -> None:
        self.bad += 1
        self.sample = self.sample or sample


class LoadConnection(asyncio.Protocol):
    """One connection; also the callbacks of its parser. Silent once the tally stops sending."""

    def __init__(
        self, tally: Tally, requests: Iterator[tuple[bytes, bytes]], *, clock: Callable[[], float] = perf_counter
    ) -> None:
        """`requests`: (request, mark) of each call; connections may share one iterator."""
        self._tally = tally
        self._requests = requests
        self._mark = b""
        self._clock = clock
        self._parser = httptools.HttpResponseParser(self)
        # The next step of an answered connection, while the load runs.
        self.on_free: Callable[[LoadConnection], None] = LoadConnection.send
        self._transport: asyncio.WriteTransport | None = None
        self._parts: list[bytes] = []
        self._sent_at_s = 0.0
        self._is_waiting = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connected; `send` starts it."""
        self._transport = cast(asyncio.WriteTransport, transport)  # uvloop's have no base class of asyncio's

    def send(self, since_s: float | None = None) -> None:
        """Send the next request, whose time counts from `since_s` or now; the load ends with the last one."""
        if self._transport is None:
            return
        request, self._mark = next(self._requests, (b"", b""))
        if not request:
            self._tally.end()
            return
        self._tally.sent += 1
        self._is_waiting = True
        self._tally.change_waiting(1)
        self._sent_at_s = self._clock() if since_s is None else since_s
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        """Parse; the callbacks count and send again."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as fault:
            self._break(f"not HTTP: {type(fault).__name__}")

    def connection_lost(self, exc: Exception | None) -> None:
        """Closed by the other side while the load runs: a fault, for keep-alive was agreed on."""
        if self._transport is not None and (self._is_waiting or self._tally.is_sending):
            self._tally.record_broken(f"connection lost: {exc!r}")
            self._end_waiting()
        self._transport = None

    def close(self) -> None:
        """Close from our side."""
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.close()

    def _break(self, reason: str) -> None:
        self._tally.record_broken(reason)
        self._end_waiting()
        self.close()

    def _end_waiting(self) -> None:
        if self._is_waiting:
            self._is_waiting = False
            self._tally.change_waiting(-1)

    # --- callbacks of the parser

    def on_message_begin(self) -> None:
        """The next answer."""
        self._parts = []

    def on_body(self, body: bytes) -> None:
        """A part of the body."""
        self._parts.append(body)

    def on_message_complete(self) -> None:
        """An answer is whole: count it, and go on unless the load has ended."""
        took_s = self._clock() - self._sent_at_s
        if not self._is_waiting:
            self._break("an answer without a request")
            return
        self._end_waiting()
        self._tally.record(took_s, self._parser.get_status_code(), b"".join(self._parts), self._mark)
        if self._tally.is_sending:
            self.on_free(self)


class Pacer:
    """Calls at a fixed rate, also while answers are slow: a call that finds no free connection waits for one.

    Its time counts from when it was due, so that a slow answer shows in all calls that it held up.
    """

    def __init__(
        self, connections: Sequence[LoadConnection], per_s: float, *, clock: Callable[[], float] = perf_counter
    ) -> None:
        self._free = deque(connections)
        self._due: deque[float] = deque()
        self._per_s, self._clock = per_s, clock
        self._began_s, self._count = clock(), 0

    def tick(self) -> None:
        """Send what has become due."""
        now_s = self._clock()
        while (due_s := self._due_at()) <= now_s:
            self._count += 1
            self._due.append(due_s)
        self._send()

    def release(self, connection: LoadConnection) -> None:
        """A connection is free."""
        self._free.append(connection)
        self._send()

    async def run(self) -> None:
        """Tick whenever a call is due, until cancelled."""
        while True:
            self.tick()
            await asyncio.sleep(max(SHORTEST_WAIT_S, self._due_at() - self._clock()))

    def _due_at(self) -> float:
        """Of the next call."""
        return self._began_s + self._count / self._per_s

    def _send(self) -> None:
        while self._free and self._due:
            self._free.popleft().send(self._due.popleft())
