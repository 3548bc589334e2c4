"""The parts of a wide run, each on processes that are up."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlencode

import psutil

from bench.accounting import peak_rss_bytes
from bench.figures import percentile
from bench.load import Job, Outcome
from bench.processes import HOST, BenchFailed
from bench.results import MeasuredPoint, VendorLoad
from bench.stage import LoadGenerator, VendorServer, ask
from bench.turns import TurnBook, write_book
from bench.wide.books import book_of, requests_of
from bench.wide.one_by_one import OneByOne, ask_all, cpu_clock
from bench.wide.results import FirstCalls, Limit, Minute, Revocation, Steady
from bench.wide.sizes import Sizes
from bench.wide.stage import GatewayProcess

TURNS_OF_JOB = 5_000
JOB_TIMEOUT_S = 110.0
WARM_UP_S = 0.3
FILLING_CONNECTIONS = 64
STEADY_CONNECTIONS = 64
REVOCATION_TIMEOUT_S = 20.0
Say = Callable[[str], None]


class Load:
    """Sends load, and counts what was answered: each good answer has one row in the call log."""

    def __init__(self, generator: LoadGenerator, vendor: VendorServer, folder: Path) -> None:
        self._generator, self._vendor, self._folder = generator, vendor, folder
        self.answered = 0
        self._next: dict[str, int] = {}
        self._books = 0

    def book(self, name: str, book: TurnBook) -> str:
        """A new file with the book: the load generator remembers a file by its name."""
        self._books += 1
        file = self._folder / f"{name}-{self._books}.book"
        write_book(book, file)
        return str(file)

    def fill(self, port: int, book: str, count: int, *, say: Say = lambda _: None) -> None:
        """The first `count` turns of a book, once. Raises: BenchFailed for a wrong answer."""
        for first in range(0, count, TURNS_OF_JOB):
            job = Job(
                host=HOST,
                port=port,
                connections=FILLING_CONNECTIONS,
                warm_up_s=0,
                measure_s=JOB_TIMEOUT_S,
                book=book,
                first=first,
                count=min(TURNS_OF_JOB, count - first),
            )
            outcome = self._run(job, "first calls")
            say(f"{first + outcome.good:,} of {count:,} first calls")

    def timed(
        self, port: int, book: str, connections: int, measure_s: float, *, meters: Mapping[str, int], per_s: float = 0.0
    ) -> Outcome:
        """Callers in turn for some seconds, each time from where this process was left. Raises: BenchFailed."""
        key = f"{port} {book}"
        job = Job(
            host=HOST,
            port=port,
            connections=connections,
            warm_up_s=WARM_UP_S,
            measure_s=measure_s,
            meters=dict(meters),
            book=book,
            first=self._next.get(key, 0),
            per_s=per_s,
        )
        outcome = self._run(job, f"{connections} connections", must_be_right=not per_s)
        self._next[key] = job.first + outcome.sent
        return outcome

    def one_by_one(self, port: int, requests: Sequence[tuple[bytes, bytes]], pid: int | None = None) -> list[float]:
        """Milliseconds of CPU of each request. Raises: BenchFailed."""
        found = ask_all(port, requests, cpu_clock(pid)) if pid is not None else ask_all(port, requests)
        self.answered += len(requests)
        return found

    @property
    def vendor_pid(self) -> int:
        return self._vendor.process.pid

    def vendor_requests(self) -> int:
        return self._vendor.posts()

    def limited(self, port: int, book: str, sent: int) -> int:
        """How many of so many calls one caller had answered. Raises: BenchFailed for calls without any answer."""
        job = Job(
            host=HOST,
            port=port,
            connections=FILLING_CONNECTIONS,
            warm_up_s=0,
            measure_s=JOB_TIMEOUT_S,
            book=book,
            count=sent,
        )
        outcome = self._generator.run_job(job, "calls over a limit")
        self.answered += outcome.good
        if outcome.unanswered or outcome.answered != sent:
            raise BenchFailed(f"calls over a limit: {outcome.answered} of {sent} were answered. {outcome.sample}")
        return outcome.good

    def _run(self, job: Job, described: str, *, must_be_right: bool = True) -> Outcome:
        outcome = self._generator.run_job(job, described)
        self.answered += outcome.answered - outcome.bad
        is_wrong = outcome.bad or outcome.unanswered or not outcome.good
        if must_be_right and (is_wrong or (job.count and outcome.good != job.count)):
            raise BenchFailed(
                f"{described}: {outcome.good} right answers, {outcome.bad} wrong ones, {outcome.unanswered} missing."
                f" {outcome.sample}"
            )
        return outcome


def measure_point(
    load: Load,
    name: str,
    *,
    port: int,
    gateways: Sequence[GatewayProcess],
    others: Mapping[str, int],
    book: str,
    connections: int,
    number: int,
    seconds: float,
) -> tuple[MeasuredPoint, float]:
    """A point, and how many cores of the machine were busy meanwhile, warm-up included."""
    meters = {f"gateway {each.pid}": each.pid for each in gateways}
    seen, busy = load.vendor_requests(), BusyCores()
    outcome = load.timed(port, book, connections, seconds, meters={**meters, **others})
    busy_cores = busy.taken()
    point = MeasuredPoint(
        target=name,
        load=VendorLoad(0, connections),
        round=number,
        seconds=outcome.seconds,
        good=outcome.good,
        bad=outcome.bad,
        answered=outcome.answered,
        unanswered=outcome.unanswered,
        vendor_calls=load.vendor_requests() - seen,
        p50_ms=outcome.p50_ms,
        p95_ms=outcome.p95_ms,
        p99_ms=outcome.p99_ms,
        max_ms=outcome.max_ms,
        target_cpu_s=sum(outcome.cpu_s[name] for name in meters),
        foreign_cores=outcome.foreign_cores,
        peak_rss_bytes=max(peak_rss_bytes(each.pid) for each in gateways),
        sample=outcome.sample,
    )
    return point, busy_cores


class BusyCores:
    """How many cores of the machine are busy, from now on."""

    def __init__(self) -> None:
        self._began = self._read()

    def taken(self) -> float:
        """Idle time and time of waiting for a disk are not busy."""
        now = self._read()
        whole, idle = now[0] - self._began[0], now[1] - self._began[1]
        return (whole - idle) / whole * (psutil.cpu_count() or 1) if whole else 0.0

    @staticmethod
    def _read() -> tuple[float, float]:
        times = psutil.cpu_times()
        guests = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)
        return float(sum(times)) - guests, float(times.idle + getattr(times, "iowait", 0.0))


def first_calls(load: Load, name: str, gateway: GatewayProcess, requests: Sequence[tuple[bytes, bytes]]) -> FirstCalls:
    """CPU time of calls one by one. Raises: BenchFailed."""
    seen = load.vendor_requests()
    took_ms = sorted(load.one_by_one(gateway.port, requests, gateway.pid))
    return FirstCalls(
        name,
        len(requests),
        percentile(took_ms, 50),
        percentile(took_ms, 99),
        vendor_requests=(load.vendor_requests() - seen) / len(requests) if requests else float("nan"),
    )


def check_limit(load: Load, port: int, sizes: Sizes, bearers: Sequence[str], *, processes: int, allowed: int) -> Limit:
    """One caller sends three times what it may, over all processes."""
    calls = [(sizes.spare_caller(0), 0)] * (3 * allowed)
    book = load.book("limit", book_of(calls, sizes, bearers))
    return Limit(processes, allowed, len(calls), load.limited(port, book, len(calls)))


def check_revocation(
    load: Load, gateways: Sequence[GatewayProcess], sizes: Sizes, bearers: Sequence[str]
) -> Revocation:
    """A token that every process knows is revoked by the first one. Raises: BenchFailed when it goes on to work."""
    spare = sizes.spare_caller(1)
    ((request, mark),) = requests_of([(spare, 0)], sizes, bearers)
    for each in gateways:
        load.one_by_one(each.port, [(request, mark)] * 2)
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    ask(gateways[0].port, "POST", "/oauth/revoke", urlencode({"token": bearers[spare]}), form)
    revoked_s = time.monotonic()
    return Revocation([_refused_after(load, each, request, revoked_s) for each in gateways])


def _refused_after(load: Load, gateway: GatewayProcess, request: bytes, revoked_s: float) -> float:
    with OneByOne(gateway.port) as connection:
        while time.monotonic() < revoked_s + REVOCATION_TIMEOUT_S:
            status = connection.ask(request).status
            if status == 401:
                return time.monotonic() - revoked_s
            load.answered += status == 200
    raise BenchFailed("a process still accepts a token that was revoked 20 s ago")


def keep_steady(
    load: Load, gateway: GatewayProcess, book: str, *, per_s: float, minutes: int, minute_s: float, say: Say
) -> Steady:
    """The same rate for so many minutes. Raises: BenchFailed."""
    before = gateway.collect()
    found = []
    for number in range(minutes):
        outcome = load.timed(gateway.port, book, STEADY_CONNECTIONS, minute_s, meters={}, per_s=per_s)
        errors = outcome.bad + outcome.unanswered
        minute = Minute(outcome.good, errors, outcome.p50_ms, outcome.p99_ms, gateway.rss_bytes())
        found.append(minute)
        say(f"minute {number + 1} of {minutes}: p99 {minute.p99_ms:.2f} ms, RSS {minute.rss_bytes / 1e6:.0f} MB")
    after = gateway.collect()
    return Steady(per_s, found, after["freed"] - before["freed"], before["tracked"], after["tracked"])
