"""Pure: the bounds on the gateway that one run can judge, and the judgement."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter

from bench import targets
from bench.figures import Spread
from bench.plan import DELAY_MS
from bench.results import Figure, Results, VendorLoad

MEGABYTE = 1_000_000
_p50: Figure = attrgetter("p50_ms")
_p99: Figure = attrgetter("p99_ms")
_calls: Figure = attrgetter("calls_per_s")
_cpu: Figure = attrgetter("cpu_ms_per_call")
_tail: Figure = attrgetter("p99_over_p50")


class Verdict(StrEnum):
    """How a figure stands to its bound."""

    GOAL = "goal met"
    MUST = "must met"
    MISSED = "MISSED"
    UNKNOWN = "not measured"


@dataclass(frozen=True, slots=True)
class Limits:
    """The bound that a figure has to keep, and the one that it should keep."""

    title: str
    must: float
    goal: float
    is_floor: bool

    def judge(self, value: float) -> Verdict:
        """The verdict on a figure; UNKNOWN if it is NaN."""
        if math.isnan(value):
            return Verdict.UNKNOWN
        for limit, verdict in ((self.goal, Verdict.GOAL), (self.must, Verdict.MUST)):
            if value >= limit if self.is_floor else value <= limit:
                return verdict
        return Verdict.MISSED

    def wanted(self) -> str:
        """Must and goal as the report shows them."""
        sign = ">=" if self.is_floor else "<="
        return f"{sign} {self.must:g}" if self.must == self.goal else f"{sign} {self.must:g} (goal {self.goal:g})"


@dataclass(frozen=True, slots=True)
class Bound(Limits):
    """`read` takes the results and a target; the figure is NaN when the run did not measure it."""

    read: Callable[[Results, str], Spread]


@dataclass(frozen=True, slots=True)
class Judgement:
    """One bound applied to one target."""

    bound: Bound
    target: str
    spread: Spread

    @property
    def verdict(self) -> Verdict:
        """By the median of the rounds."""
        return self.bound.judge(self.spread.median)


def _versus_pass_through(figure: Figure, load: VendorLoad) -> Callable[[Results, str], Spread]:
    return lambda results, target: results.ratio(target, targets.PASS_THROUGH, load, figure)


def _added(figure: Figure, load: VendorLoad) -> Callable[[Results, str], Spread]:
    return lambda results, target: results.difference(target, targets.DIRECT, load, figure)


def _once(read: Callable[[Results, str], float]) -> Callable[[Results, str], Spread]:
    def spread(results: Results, target: str) -> Spread:
        value = read(results, target)
        return Spread(value, value, value)

    return spread


def added_over_pass_through(results: Results, target: str) -> Spread:
    """The time that a lone call to a slow vendor takes longer, over what the bare proxy makes it take longer."""
    return results.added_ratio(target, targets.PASS_THROUGH, targets.DIRECT, VendorLoad(DELAY_MS, 1), _p50)


def _peak_rss_mb(results: Results, target: str) -> float:
    return results.peak_rss_bytes(target) / MEGABYTE


_SLOW = f"{DELAY_MS} ms vendor"
BOUNDS = (
    Bound("calls/s c=64 / pass-through", 0.40, 0.65, True, _versus_pass_through(_calls, VendorLoad(0, 64))),
    Bound("CPU per call c=16 / pass-through", 2.5, 1.7, False, _versus_pass_through(_cpu, VendorLoad(0, 16))),
    Bound("p99 / p50 c=16", 3.0, 2.0, False, lambda results, target: results.spread(target, VendorLoad(0, 16), _tail)),
    Bound(f"{_SLOW}: added p50 c=1 / pass-through", 2.5, 1.5, False, added_over_pass_through),
    Bound(f"{_SLOW}: added p99 c=16, ms", 15.0, 8.0, False, _added(_p99, VendorLoad(DELAY_MS, 16))),
    Bound("peak RSS, MB", 150.0, 100.0, False, _once(_peak_rss_mb)),
    Bound("vendor requests per call", 1.01, 1.01, False, _once(Results.vendor_calls_per_call)),
)
# Without this one, a target of kept results could be one of calls.
KEPT_BOUND = Bound("vendor requests per cached call", 0.05, 0.05, False, _once(Results.vendor_calls_per_call))


def judgements(results: Results) -> list[Judgement]:
    """Every bound on every gateway target of the run."""
    names = [name for name in results.targets() if name in targets.BOUNDED]
    found = [Judgement(bound, name, bound.read(results, name)) for bound in BOUNDS for name in names]
    if targets.MCP_KEPT in results.targets():
        found.append(Judgement(KEPT_BOUND, targets.MCP_KEPT, KEPT_BOUND.read(results, targets.MCP_KEPT)))
    return found
