"""How figures are judged, and that each bound reads the figure it names."""

from __future__ import annotations

import math

import pytest

from bench import targets
from bench.bounds import BOUNDS, Bound, Verdict, judgements
from bench.figures import Spread
from bench.results import Results, VendorLoad
from tests.unit.bench.points import make_point

FLOOR = Bound("floor", 0.4, 0.65, True, lambda results, target: Spread(0, 0, 0))
CEILING = Bound("ceiling", 3.0, 2.0, False, lambda results, target: Spread(0, 0, 0))


@pytest.mark.parametrize(
    ("bound", "value", "verdict"),
    [
        (FLOOR, 0.65, Verdict.GOAL),
        (FLOOR, 0.64, Verdict.MUST),
        (FLOOR, 0.40, Verdict.MUST),
        (FLOOR, 0.39, Verdict.MISSED),
        (CEILING, 2.0, Verdict.GOAL),
        (CEILING, 2.1, Verdict.MUST),
        (CEILING, 3.0, Verdict.MUST),
        (CEILING, 3.1, Verdict.MISSED),
        (FLOOR, math.nan, Verdict.UNKNOWN),
        (CEILING, math.nan, Verdict.UNKNOWN),
    ],
)
def test_verdicts(bound: Bound, value: float, verdict: Verdict) -> None:
    assert bound.judge(value) is verdict


def test_goals_are_not_laxer_than_musts() -> None:
    for bound in BOUNDS:
        assert bound.goal >= bound.must if bound.is_floor else bound.goal <= bound.must


def test_wanted_says_direction_and_numbers() -> None:
    assert FLOOR.wanted() == ">= 0.4 (goal 0.65)"
    assert CEILING.wanted() == "<= 3 (goal 2)"


@pytest.fixture
def results() -> Results:
    """One round in which every judged figure of the gateway is another one."""
    found = Results()
    for load in (VendorLoad(0, 16), VendorLoad(0, 64)):
        found.add(make_point(targets.PASS_THROUGH, load, good=4000, target_cpu_s=0.8))
    found.add(make_point(targets.MCP_KEY, VendorLoad(0, 16), good=2000, target_cpu_s=0.8, p50_ms=4.0, p99_ms=14.0))
    found.add(make_point(targets.MCP_KEY, VendorLoad(0, 64), good=2200, peak_rss_bytes=120_000_000))
    for target, p50_ms, p99_ms in (
        (targets.DIRECT, 50.0, 51.0),
        (targets.PASS_THROUGH, 51.0, 53.0),
        (targets.MCP_KEY, 52.0, 58.0),
    ):
        for connections in (1, 16):
            found.add(make_point(target, VendorLoad(50, connections), p50_ms=p50_ms, p99_ms=p99_ms))
    return found


def test_every_bound_reads_its_figure(results: Results) -> None:
    found = {one.bound.title: (round(one.spread.median, 3), one.verdict) for one in judgements(results)}
    assert found == {
        "calls/s c=64 / pass-through": (0.55, Verdict.MUST),
        "CPU per call c=16 / pass-through": (2.0, Verdict.MUST),
        "p99 / p50 c=16": (3.5, Verdict.MISSED),
        "50 ms vendor: added p50 c=1 / pass-through": (2.0, Verdict.MUST),
        "50 ms vendor: added p99 c=16, ms": (7.0, Verdict.GOAL),
        "peak RSS, MB": (120.0, Verdict.MUST),
        "vendor requests per call": (1.0, Verdict.GOAL),
    }


def test_only_the_gateway_is_judged(results: Results) -> None:
    assert {one.target for one in judgements(results)} == {targets.MCP_KEY}
    assert judgements(Results([make_point(targets.DIRECT)])) == []


def test_what_was_not_measured_is_not_judged() -> None:
    found = judgements(Results([make_point(targets.CLI, VendorLoad(0, 1))]))
    by_title = {one.bound.title: one.verdict for one in found}
    assert by_title["calls/s c=64 / pass-through"] is Verdict.UNKNOWN
    assert by_title["50 ms vendor: added p99 c=16, ms"] is Verdict.UNKNOWN
    assert by_title["peak RSS, MB"] is Verdict.GOAL


@pytest.mark.parametrize(("vendor_calls", "verdict"), [(60, Verdict.GOAL), (2400, Verdict.MISSED)])
def test_cached_calls_must_not_reach_the_vendor(vendor_calls: int, verdict: Verdict) -> None:
    found = judgements(Results([make_point(targets.MCP_KEPT, vendor_calls=vendor_calls)]))
    assert [one.verdict for one in found] == [verdict]
