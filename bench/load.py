"""The load generator: N keep-alive connections, each with one call under way at a time (closed loop).

A process of its own, `python -m bench.load`: a job is a JSON line on standard input, its outcome one on its output.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys
from array import array
from collections.abc import Callable
from time import perf_counter
from typing import cast

import httptools
import msgspec
import uvloop

from bench.accounting import CpuMeter
from bench.figures import percentile

CONNECT_TIMEOUT_S = 10.0
DRAIN_TIMEOUT_S = 20.0
MAX_CONNECTIONS = 512
MAX_PHASE_S = 120.0
SAMPLE_BYTES = 300


class Job(msgspec.Struct):
    """A load generator's task. Connection i sends requests[i % n] again and again, and expects marks[i % n] each time.

    `meters` names processes whose CPU time is taken over the measured seconds.
    """

    host: str
    port: int
    requests: list[bytes]
    marks: list[bytes]
    connections: int
    warm_up_s: float
    measure_s: float
    meters: dict[str, int] = msgspec.field(default_factory=dict)


class Outcome(msgspec.Struct):
    """The result of a job. `good` and the times are of the measured seconds; `bad` and `answered` of all of it."""

    seconds: float
    good: int
    bad: int
    answered: int
    unanswered: int
    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float
    cpu_s: dict[str, float]
    foreign_cores: float
    sample: str = ""


class JobRefused(ValueError):
    """A job out of bounds."""


def check_job(job: Job) -> None:
    """Raises: JobRefused. The load stays bounded and on this machine."""
    if job.host != "127.0.0.1":
        raise JobRefused("load goes to 127.0.0.1 only")
    if not 1 <= job.connections <= MAX_CONNECTIONS:
        raise JobRefused(f"connections must be between 1 and {MAX_CONNECTIONS}")
    if not (0 <= job.warm_up_s <= MAX_PHASE_S and 0 < job.measure_s <= MAX_PHASE_S):
        raise JobRefused(f"warm-up and measurement must not be longer than {MAX_PHASE_S:.0f} s")
    if not job.requests or len(job.requests) != len(job.marks):
        raise JobRefused("there must be requests, and a mark for each")


class Tally:
    """Counts over all connections of a job."""

    def __init__(self) -> None:
        self.is_sending = True
        self.is_measuring = False
        self.good = self.bad = self.answered = 0
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

    async def drain(self) -> None:
        """No more is sent, and what is under way is answered, or DRAIN_TIMEOUT_S over."""
        self.is_sending = False
        self.change_waiting(0)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_TIMEOUT_S):
                await self.idle.wait()

    def record_broken(self, reason: str) -> None:
        """A connection that ended or spoke no HTTP."""
        self._record_bad(reason)

    def _record_bad(self, sample: str) -> None:
        self.bad += 1
        self.sample = self.sample or sample


class LoadConnection(asyncio.Protocol):
    """One connection; also the callbacks of its parser. Silent once the tally stops sending."""

    def __init__(self, tally: Tally, request: bytes, mark: bytes, *, clock: Callable[[], float] = perf_counter) -> None:
        self._tally = tally
        self._request = request
        self._mark = mark
        self._clock = clock
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.WriteTransport | None = None
        self._parts: list[bytes] = []
        self._sent_at_s = 0.0
        self._is_waiting = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connected; `send` starts it."""
        self._transport = cast(asyncio.WriteTransport, transport)  # uvloop's have no base class of asyncio's

    def send(self) -> None:
        """Send the request once."""
        if self._transport is None:
            return
        self._is_waiting = True
        self._tally.change_waiting(1)
        self._sent_at_s = self._clock()
        self._transport.write(self._request)

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
            self._break("an answer that nobody asked for")
            return
        self._end_waiting()
        self._tally.record(took_s, self._parser.get_status_code(), b"".join(self._parts), self._mark)
        if self._tally.is_sending:
            self.send()


async def run_job(job: Job) -> Outcome:
    """Connect, warm up, measure, wait for what is under way, close.

    Raises: JobRefused; OSError or TimeoutError when the connections cannot be made.
    """
    check_job(job)
    tally, meter = Tally(), CpuMeter(job.meters)
    connections = await _connect(job, tally)
    try:
        for connection in connections:
            connection.send()
        await asyncio.sleep(job.warm_up_s)
        meter.start()
        tally.is_measuring, began_s = True, perf_counter()
        await asyncio.sleep(job.measure_s)
        tally.is_measuring, seconds = False, perf_counter() - began_s
        usage = meter.stop()
        await tally.drain()
    finally:
        unanswered = tally.waiting
        for connection in connections:
            connection.close()
    ordered_ms = [latency_s * 1000 for latency_s in sorted(tally.latencies_s)]
    return Outcome(
        seconds=seconds,
        good=tally.good,
        bad=tally.bad,
        answered=tally.answered,
        unanswered=unanswered,
        p50_ms=percentile(ordered_ms, 50),
        p95_ms=percentile(ordered_ms, 95),
        p99_ms=percentile(ordered_ms, 99),
        max_ms=percentile(ordered_ms, 100),
        cpu_s=usage.cpu_s,
        foreign_cores=usage.foreign_cores,
        sample=tally.sample,
    )


async def _connect(job: Job, tally: Tally) -> list[LoadConnection]:
    loop = asyncio.get_running_loop()
    connections: list[LoadConnection] = []
    async with asyncio.timeout(CONNECT_TIMEOUT_S):
        for number in range(job.connections):
            which = number % len(job.requests)
            connection = LoadConnection(tally, job.requests[which], job.marks[which])
            await loop.create_connection(lambda connection=connection: connection, job.host, job.port)  # type: ignore[misc]
            connections.append(connection)
    return connections


def main() -> int:
    """Do the jobs of standard input until it ends. A job that fails answers {"error"}."""
    decode, encode = msgspec.json.Decoder(Job).decode, msgspec.json.encode
    gc.freeze()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        for line in sys.stdin.buffer:
            try:
                answer = encode(runner.run(run_job(decode(line))))
            except (OSError, TimeoutError, ValueError) as fault:
                answer = encode({"error": f"{type(fault).__name__}: {fault}"})
            sys.stdout.buffer.write(answer + b"\n")
            sys.stdout.buffer.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
