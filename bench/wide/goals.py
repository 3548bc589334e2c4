"""Pure: what a wide run should find, and the judgement."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter

from bench.bounds import MEGABYTE, Limits, Verdict
from bench.figures import Spread, ratio
from bench.results import Figure, VendorLoad
from bench.wide.results import (
    KNOWN,
    NARROW,
    UNKNOWN_CALLER,
    UNKNOWN_ORGANIZATION,
    WIDE,
    FirstCalls,
    Memory,
    Steady,
    WideResults,
    alone,
    behind_proxy,
)

_calls: Figure = attrgetter("calls_per_s")
_cpu: Figure = attrgetter("cpu_ms_per_call")
_p99: Figure = attrgetter("p99_ms")
KILOBYTE = 1_000
SECOND_PROCESSES = 2
MOST_PROCESSES = 4


@dataclass(frozen=True, slots=True)
class Goal(Limits):
    """`read` gives NaN for what the run did not measure."""

    read: Callable[[WideResults], Spread]


@dataclass(frozen=True, slots=True)
class JudgedGoal:
    goal: Goal
    spread: Spread

    @property
    def verdict(self) -> Verdict:
        """By the median of the rounds."""
        return self.goal.judge(self.spread.median)


def _one(value: float) -> Spread:
    return Spread(value, value, value)


def _wide_to_narrow(figure: Figure, connections: int, processes: int = 0) -> Callable[[WideResults], Spread]:
    """`processes`: behind the proxy; 0 for one process without it."""

    def read(results: WideResults) -> Spread:
        wide, narrow = ((behind_proxy(kind, processes) if processes else alone(kind)) for kind in (WIDE, NARROW))
        return results.matrix().ratio(wide, narrow, VendorLoad(0, connections), figure)

    return read


def _cpu_to_one_process(results: WideResults) -> Spread:
    return _to_one_process(results, _cpu)


def _calls_to_one_process(results: WideResults) -> Spread:
    """NaN where the two had no cores of their own: the ratio is the machine's then."""
    if results.is_limited_by_machine(behind_proxy(WIDE, SECOND_PROCESSES)):
        return _one(math.nan)
    return _to_one_process(results, _calls)


def _to_one_process(results: WideResults, figure: Figure) -> Spread:
    two, one = behind_proxy(WIDE, SECOND_PROCESSES), behind_proxy(WIDE, 1)
    return results.matrix().ratio(two, one, VendorLoad(0, 64), figure)


def more_than_known(results: WideResults, name: str, figure: Callable[[FirstCalls], float]) -> float:
    """How much more a first call takes than a call of a known caller."""
    first, known = results.first_call(name), results.known_calls()
    return figure(first) - figure(known) if first is not None and known is not None else math.nan


def _more(name: str, figure: Callable[[FirstCalls], float]) -> Callable[[WideResults], Spread]:
    return lambda results: _one(more_than_known(results, name, figure))


def _statements_of(name: str) -> Callable[[WideResults], Spread]:
    def read(results: WideResults) -> Spread:
        found = results.first_call(name)
        return _one(math.nan if found is None else found.statements)

    return read


def _memory(figure: Callable[[Memory], float]) -> Callable[[WideResults], Spread]:
    return lambda results: _one(math.nan if results.memory is None else figure(results.memory) / KILOBYTE)


def _process_memory(results: WideResults) -> Spread:
    return _one(math.nan if results.memory is None else results.memory.after / MEGABYTE)


def _steady(figure: Callable[[Steady], float]) -> Callable[[WideResults], Spread]:
    return lambda results: _one(math.nan if results.steady is None else figure(results.steady))


def _vendor_requests(results: WideResults) -> Spread:
    return _one(results.matrix().vendor_calls_per_call(alone(WIDE)))


def _beyond_limit(results: WideResults) -> Spread:
    found = results.limit
    return _one(math.nan if found is None else abs(found.answered - found.allowed))


def _revoked_after(results: WideResults) -> Spread:
    return _one(math.nan if results.revocation is None else max(results.revocation.seconds))


def _worst_minute(found: Steady) -> float:
    """The worst 99th percentile of a later minute over the first one's."""
    first, *later = [each.p99_ms for each in found.minutes]
    return ratio(max(later), first) if later else math.nan


def _growth(found: Steady) -> float:
    first, *later = [each.rss_bytes for each in found.minutes]
    return ratio(later[-1], first) if later else math.nan


_p50_of: Callable[[FirstCalls], float] = attrgetter("cpu_p50_ms")
_p99_of: Callable[[FirstCalls], float] = attrgetter("cpu_p99_ms")
GOALS = (
    Goal("calls/s c=16, wide / narrow", 0.75, 0.85, True, _wide_to_narrow(_calls, 16)),
    Goal("calls/s c=64, wide / narrow", 0.75, 0.85, True, _wide_to_narrow(_calls, 64)),
    Goal("CPU per call c=16, wide / narrow", 1.25, 1.2, False, _wide_to_narrow(_cpu, 16)),
    Goal("CPU per call c=64, wide / narrow", 1.25, 1.2, False, _wide_to_narrow(_cpu, 64)),
    Goal("p99 c=16, wide / narrow", 1.5, 1.2, False, _wide_to_narrow(_p99, 16)),
    Goal("statements of a known call", 0.05, 0.01, False, _statements_of(KNOWN)),
    Goal("vendor requests per call, wide", 1.02, 1.01, False, _vendor_requests),
    Goal(f"statements, {UNKNOWN_CALLER}", 3, 3, False, _statements_of(UNKNOWN_CALLER)),
    Goal(f"statements, {UNKNOWN_ORGANIZATION}", 3, 3, False, _statements_of(UNKNOWN_ORGANIZATION)),
    *(
        Goal(f"CPU more than known, {name}: {title}, ms", most_ms, most_ms, False, _more(name, figure))
        for name in (UNKNOWN_CALLER, UNKNOWN_ORGANIZATION)
        for title, most_ms, figure in (("p50", 2, _p50_of), ("p99", 5, _p99_of))
    ),
    Goal("memory of the process with everything known, MB", 400, 400, False, _process_memory),
    Goal("memory of an organization, kB", 8, 5, False, _memory(attrgetter("organization"))),
    Goal("memory of a caller, kB", 4, 2.5, False, _memory(attrgetter("caller"))),
    Goal("memory of a tool list and its session, kB", 6, 4, False, _memory(attrgetter("tool_list"))),
    Goal("CPU per call c=64, wide, two processes / one", 1.25, 1.1, False, _cpu_to_one_process),
    Goal("calls/s c=64, wide, two processes / one", 1.8, 1.9, True, _calls_to_one_process),
    Goal("calls/s c=64, wide / narrow, four processes", 0.8, 0.9, True, _wide_to_narrow(_calls, 64, MOST_PROCESSES)),
    Goal("CPU c=64, wide / narrow, four processes", 1.25, 1.1, False, _wide_to_narrow(_cpu, 64, MOST_PROCESSES)),
    Goal("calls beside a caller's limit over all processes", 0, 0, False, _beyond_limit),
    Goal("seconds until every process refuses a revoked token", 1, 1, False, _revoked_after),
    Goal("steady: errors", 0, 0, False, _steady(attrgetter("errors"))),
    Goal("steady: worst p99 of a minute / the first one's", 2, 1.5, False, _steady(_worst_minute)),
    Goal("steady: RSS of the last minute / the first one's", 1.1, 1.05, False, _steady(_growth)),
    Goal(
        "steady: objects for the collector in a call", 0.1, 0.01, False,
        _steady(lambda found: ratio(found.left, found.calls)),
    ),
)  # fmt: skip


def judged_goals(results: WideResults) -> list[JudgedGoal]:
    return [JudgedGoal(goal, goal.read(results)) for goal in GOALS]
