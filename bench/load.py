"""The load generator: N keep-alive connections, each with one call under way at a time (closed loop).

A process of its own, `python -m bench.load`: a job is a JSON line on standard input, its outcome one on its output.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Iterator
from functools import lru_cache
from itertools import repeat
from pathlib import Path
from time import perf_counter

import msgspec
import uvloop

from bench.accounting import CpuMeter
from bench.connection import LoadConnection, Pacer, Tally
from bench.figures import percentile
from bench.turns import TurnBook, read_book

CONNECT_TIMEOUT_S = 10.0
MAX_CONNECTIONS = 512
MAX_PHASE_S = 120.0
MAX_TURNS = 20_000
MAX_PER_S = 100_000


class Job(msgspec.Struct):
    """A load generator's task. Connection i sends requests[i % n] again and again, and expects marks[i % n] each time.

    With `book`, the name of a file, all connections take the turns of that book together, from turn `first` on; then
    `count` ends the job after so many turns, all of them measured. `per_s` calls are sent each second, or as many as
    the answers let (0). `meters` names processes whose CPU time is taken over the measured seconds.
    """

    host: str
    port: int
    connections: int
    warm_up_s: float
    measure_s: float
    requests: list[bytes] = msgspec.field(default_factory=list)
    marks: list[bytes] = msgspec.field(default_factory=list)
    meters: dict[str, int] = msgspec.field(default_factory=dict)
    book: str = ""
    first: int = 0
    count: int = 0
    per_s: float = 0.0


class Outcome(msgspec.Struct):
    """The result of a job. `good` and the times are of the measured seconds; `bad` and `answered` of all of it."""

    seconds: float
    good: int
    bad: int
    answered: int
    unanswered: int
    sent: int
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
    if not 0 <= job.count <= MAX_TURNS or job.first < 0:
        raise JobRefused(f"a job has at most {MAX_TURNS} turns, from the first on")
    if not 0 <= job.per_s <= MAX_PER_S or (job.count and job.per_s):
        raise JobRefused(f"at most {MAX_PER_S} calls a second, and not with a number of turns")
    if job.book:
        return
    if job.count or not job.requests or len(job.requests) != len(job.marks):
        raise JobRefused("there must be requests, and a mark for each")


async def run_job(job: Job) -> Outcome:
    """Connect, warm up, measure, wait for what is under way, close.

    Raises: JobRefused; OSError or TimeoutError when the connections cannot be made.
    """
    check_job(job)
    sources = _sources(job)
    tally, meter = Tally(), CpuMeter(job.meters)
    connections = await _connect(job, tally, sources)
    try:
        if job.count:
            meter.start()
            tally.is_measuring, began_s = True, perf_counter()
        pacing = _begin(connections, job.per_s)
        if job.count:
            await tally.wait_idle(job.measure_s)
        else:
            await asyncio.sleep(job.warm_up_s)
            meter.start()
            tally.is_measuring, began_s = True, perf_counter()
            await asyncio.sleep(job.measure_s)
        tally.is_measuring, seconds = False, perf_counter() - began_s
        usage = meter.stop()
        if pacing is not None:
            pacing.cancel()
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
        sent=tally.sent,
        p50_ms=percentile(ordered_ms, 50),
        p95_ms=percentile(ordered_ms, 95),
        p99_ms=percentile(ordered_ms, 99),
        max_ms=percentile(ordered_ms, 100),
        cpu_s=usage.cpu_s,
        foreign_cores=usage.foreign_cores,
        sample=tally.sample,
    )


def _begin(connections: list[LoadConnection], per_s: float) -> asyncio.Task[None] | None:
    """The load runs; with a rate, by the task that is returned."""
    if not per_s:
        for connection in connections:
            connection.send()
        return None
    pacer = Pacer(connections, per_s)
    for connection in connections:
        connection.on_free = pacer.release
    return asyncio.ensure_future(pacer.run())


async def _connect(job: Job, tally: Tally, sources: list[Iterator[tuple[bytes, bytes]]]) -> list[LoadConnection]:
    loop = asyncio.get_running_loop()
    connections: list[LoadConnection] = []
    async with asyncio.timeout(CONNECT_TIMEOUT_S):
        for number in range(job.connections):
            connection = LoadConnection(tally, sources[number % len(sources)])
            await loop.create_connection(lambda connection=connection: connection, job.host, job.port)  # type: ignore[misc]
            connections.append(connection)
    return connections


def _sources(job: Job) -> list[Iterator[tuple[bytes, bytes]]]:
    """The requests of connection i are those of source i % n. Raises: OSError, msgspec.DecodeError for the book."""
    if job.book:
        return [_book(job.book).requests(job.first, job.count)]
    return [repeat(pair) for pair in zip(job.requests, job.marks, strict=True)]


@lru_cache(maxsize=4)
def _book(name: str) -> TurnBook:
    return read_book(Path(name))


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
