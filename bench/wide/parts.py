"""The parts of a wide run in their order, with the processes that each needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle, islice, pairwise
from pathlib import Path

import msgspec

from bench.placement import Placement
from bench.plan import WIDE_CONNECTIONS, Plan, WidePlan
from bench.processes import Processes
from bench.turns import warm_up_turns
from bench.wide.books import Call, Passes, book_of, load_book, requests_of
from bench.wide.measurement import Load, check_limit, check_revocation, first_calls, keep_steady, measure_point
from bench.wide.results import (
    KNOWN,
    NARROW,
    UNKNOWN_CALLER,
    UNKNOWN_LIST,
    UNKNOWN_ORGANIZATION,
    WIDE,
    Memory,
    WideResults,
    alone,
    behind_proxy,
)
from bench.wide.stage import GatewayProcess, RoundRobin, StatementProxy, WideData

# Calls one by one of each kind, and those of which the statements are counted.
ONE_BY_ONE, COUNTED = 1_000, 200
COUNTED_ORGANIZATIONS = 1_000
ALLOWED_CALLS = 40
# Below so many of a kind, what they take drowns in what the allocator keeps.
LEAST_FOR_MEMORY = 250
STEADY_SHARE = 0.7
MINUTE_S = 60.0


@dataclass(slots=True)
class Parts:
    """Each method is a part and leaves its figures in `results`. Raises: BenchFailed."""

    plan: Plan
    wide: WidePlan
    folder: Path
    placement: Placement
    processes: Processes
    data: WideData
    load: Load
    results: WideResults
    say: Callable[[str], None]
    books: dict[str, str] = field(default_factory=dict)
    gateways: list[GatewayProcess] = field(default_factory=list)
    statements_of: dict[str, dict[str, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        sizes, bearers = self.wide.sizes, self.data.bearers
        self.books[WIDE] = self.load.book(WIDE, load_book(sizes, bearers))
        self.books[NARROW] = self.load.book(NARROW, load_book(sizes.narrow(), bearers))

    def count_statements(self, database_url: str) -> None:
        """Does the work of `meet_everyone`, with some organizations, in a process behind the proxy that counts."""
        proxy = StatementProxy(self.processes, self.placement, database_url)
        gateway = self._start("counted", self.placement.target, {"DATABASE_URL": proxy.url})

        def count(name: str, calls: Sequence[Call]) -> None:
            # Work that earlier calls left is not counted; work that these calls leave is.
            proxy.take_when_quiet()
            self.load.one_by_one(gateway.port, self._requests(calls))
            counts = proxy.take_when_quiet()
            self.statements_of[name] = {sql: number / len(calls) for sql, number in counts.items()}

        some = self.wide.sizes.at_most(COUNTED_ORGANIZATIONS)
        self._meet(gateway, Passes(some), COUNTED, count, lambda: None)
        book = self.load.book("counted", load_book(some, self.data.bearers))
        proxy.take_when_quiet()
        outcome = self.load.timed(gateway.port, book, WIDE_CONNECTIONS[0], self.plan.measure_s, meters={})
        counts = proxy.take_when_quiet()
        self.statements_of[KNOWN] = {sql: number / outcome.answered for sql, number in counts.items()}
        gateway.stop()
        proxy.stop()

    def meet_everyone(self) -> None:
        """The first gateway process meets every caller and every list; the memory of each part is taken."""
        gateway = self._start("gateway-1", self.placement.target)
        self.gateways.append(gateway)
        rss = [gateway.rss_bytes()]
        passes = Passes(self.wide.sizes)

        self._meet(
            gateway,
            passes,
            ONE_BY_ONE,
            lambda name, calls: self._first_calls(gateway, name, calls),
            lambda: rss.append(gateway.rss_bytes()),
        )
        self._first_calls(gateway, KNOWN, list(islice(cycle(passes.parts[UNKNOWN_ORGANIZATION]), ONE_BY_ONE)))
        self.results.memory = memory_of(rss, {name: len(calls) for name, calls in passes.parts.items()})

    def compare_alone(self) -> None:
        """Narrow and wide in turn, on one process."""
        (gateway,) = self.gateways
        for number, connections, kind in self._slices():
            self._point(alone(kind), gateway.port, self.gateways, {}, kind, connections, number)

    def compare_processes(self, counts: Sequence[int]) -> None:
        """Narrow and wide on one, two and more processes behind a proxy, in turn."""
        for number in range(2, counts[-1] + 1):
            gateway = self._start(f"gateway-{number}", self._every_core())
            sizes = self.wide.sizes
            turns = warm_up_turns(sizes.organizations, sizes.callers, sizes.vendors)
            self.load.fill(gateway.port, self.books[WIDE], turns, say=partial(self._say_of, number))
            self.gateways.append(gateway)
        self.gateways[0].let_run_on(self._every_core())
        proxies = {count: self._proxy(self.gateways[:count], f"proxy-{count}") for count in counts}
        for number, connections, kind in self._slices():
            for count in counts if number % 2 == 0 else reversed(counts):
                proxy, chosen = proxies[count], self.gateways[:count]
                name = behind_proxy(kind, count)
                self._point(name, proxy.port, chosen, {"proxy": proxy.pid}, kind, connections, number)
        for proxy in proxies.values():
            proxy.stop()

    def _say_of(self, process: int, text: str) -> None:
        self.say(f"process {process}: {text}")

    def check_together(self) -> None:
        """A revoked token, and the limit of one caller, on as many processes as there are."""
        sizes, bearers, count = self.wide.sizes, self.data.bearers, len(self.gateways)
        self.results.revocation = check_revocation(self.load, self.gateways, sizes, bearers)
        while len(self.gateways) > 1:
            self.gateways.pop().stop()
        limited = {"TOOL_CALLS_PER_HOUR": str(ALLOWED_CALLS)}
        strict = [self._start(f"limited-{number + 1}", self._every_core(), limited) for number in range(count)]
        proxy = self._proxy(strict, "proxy-limited")
        self.results.limit = check_limit(self.load, proxy.port, sizes, bearers, processes=count, allowed=ALLOWED_CALLS)
        proxy.stop()
        for gateway in strict:
            gateway.stop()

    def stay_steady(self) -> None:
        """One process, wide, at a share of the rate that it keeps up for a minute.

        A shorter time shows more: what the database does later, such as checkpoints, is not in it.
        """
        (gateway,) = self.gateways
        gateway.let_run_on(self.placement.target)
        kept_up = self.load.timed(gateway.port, self.books[WIDE], WIDE_CONNECTIONS[-1], MINUTE_S, meters={})
        most = kept_up.good / MINUTE_S
        self.say(f"kept up for a minute: {most:,.0f} calls a second")
        self.results.steady = keep_steady(
            self.load,
            gateway,
            self.books[WIDE],
            per_s=STEADY_SHARE * most,
            minutes=self.wide.steady_minutes,
            minute_s=MINUTE_S,
            say=self.say,
        )

    # --- what the parts share

    def _meet(
        self,
        gateway: GatewayProcess,
        passes: Passes,
        one_by_one: int,
        on_first: Callable[[str, Sequence[Call]], None],
        on_part: Callable[[], None],
    ) -> None:
        """The first calls of each part to `on_first`, the others many at a time."""
        self._fill(gateway, "first organizations", passes.begin)
        on_part()
        for name, calls in passes.parts.items():
            if calls:
                on_first(name, calls[:one_by_one])
            self._fill(gateway, name, calls[one_by_one:])
            on_part()

    def _fill(self, gateway: GatewayProcess, name: str, calls: Sequence[Call]) -> None:
        if calls:
            book = self.load.book("part", book_of(calls, self.wide.sizes, self.data.bearers))
            self.load.fill(gateway.port, book, len(calls), say=lambda text: self.say(f"{name}: {text}"))

    def _first_calls(self, gateway: GatewayProcess, name: str, calls: Sequence[Call]) -> None:
        found = first_calls(self.load, name, gateway, self._requests(calls))
        counts = self.statements_of.get(name, {})
        self.results.first_calls.append(msgspec.structs.replace(found, statements_by_name=counts))

    def _requests(self, calls: Sequence[Call]) -> list[tuple[bytes, bytes]]:
        return requests_of(calls, self.wide.sizes, self.data.bearers)

    def _slices(self) -> list[tuple[int, int, str]]:
        """(round, connections, kind); each round begins with the other kind."""
        return [
            (number, connections, kind)
            for number in range(self.plan.rounds)
            for connections in WIDE_CONNECTIONS
            for kind in ((NARROW, WIDE) if number % 2 == 0 else (WIDE, NARROW))
        ]

    def _point(
        self,
        name: str,
        port: int,
        gateways: Sequence[GatewayProcess],
        others: Mapping[str, int],
        kind: str,
        connections: int,
        number: int,
    ) -> None:
        point, busy_cores = measure_point(
            self.load,
            name,
            port=port,
            gateways=gateways,
            others={**others, "vendor": self.load.vendor_pid},
            book=self.books[kind],
            connections=connections,
            number=number,
            seconds=self.plan.measure_s,
        )
        self.results.points.append(point)
        self.results.busy_cores.setdefault(name, []).append(busy_cores)
        self.say(f"round {number + 1} {name} c={connections}: {point.calls_per_s:,.0f}/s p99 {point.p99_ms:.2f} ms")

    def _start(self, name: str, cores: Set[int], changes: Mapping[str, str] | None = None) -> GatewayProcess:
        gateway = GatewayProcess(self.processes, name, {**self.data.environment, **(changes or {})}, self.folder, cores)
        gateway.wait_until_serving()
        return gateway

    def _proxy(self, gateways: Sequence[GatewayProcess], name: str) -> RoundRobin:
        return RoundRobin(self.processes, self.placement, [each.port for each in gateways], name)

    def _every_core(self) -> frozenset[int]:
        return self.placement.target | self.placement.others


def memory_of(rss: Sequence[int], counts: Mapping[str, int]) -> Memory:
    """Pure. `rss`: at the start, after the first organizations, and after each part of `Passes`.

    The part of the organizations took an organization, a caller and a list each.
    """
    start, *after = rss
    grown = [later - earlier for earlier, later in pairwise(after)]
    each = {
        name: more / counts[name] if counts[name] >= LEAST_FOR_MEMORY else math.nan
        for name, more in zip((UNKNOWN_ORGANIZATION, UNKNOWN_CALLER, UNKNOWN_LIST), grown, strict=True)
    }
    return Memory(
        before=start,
        after=after[-1],
        organization=each[UNKNOWN_ORGANIZATION] - each[UNKNOWN_CALLER] - each[UNKNOWN_LIST],
        caller=each[UNKNOWN_CALLER],
        tool_list=each[UNKNOWN_LIST],
    )
