"""How a wide run is judged, and that each goal reads the figure it names."""

from __future__ import annotations

import math

import pytest

from bench.bounds import Verdict
from bench.wide.goals import GOALS, judged_goals
from bench.wide.results import Limit, Minute, Revocation, Steady, WideResults
from tests.unit.bench.wide.found import whole_run


def measured(results: WideResults) -> dict[str, float]:
    return {one.goal.title: one.spread.median for one in judged_goals(results)}


def test_every_goal_reads_its_figure() -> None:
    found = measured(whole_run())
    assert not [title for title, value in found.items() if math.isnan(value)]
    expected = {
        "calls/s c=64, wide / narrow": 1.0,
        "CPU per call c=16, wide / narrow": 1.1,
        "statements of a known call": 0,
        "statements, caller unknown": 2,
        "statements, caller and organization unknown": 3,
        "CPU more than known, caller unknown: p50, ms": 0.5,
        "CPU more than known, caller and organization unknown: p99, ms": 3,
        "memory of an organization, kB": 4,
        "memory of a caller, kB": 2,
        "calls/s c=64, wide, two processes / one": 2,
        "calls beside a caller's limit over all processes": 0,
        "seconds until every process refuses a revoked token": 0.2,
        "steady: worst p99 of a minute / the first one's": 1.2,
        "steady: RSS of the last minute / the first one's": 1.02,
        "steady: objects for the collector in a call": 0.001,
    }
    assert {title: found[title] for title in expected} == pytest.approx(expected)


def test_a_good_run_misses_nothing() -> None:
    assert not [one.goal.title for one in judged_goals(whole_run()) if one.verdict is Verdict.MISSED]


@pytest.mark.parametrize(
    ("title", "changes"),
    [
        ("calls beside a caller's limit over all processes", {"limit": Limit(4, 40, 120, 41)}),
        ("calls beside a caller's limit over all processes", {"limit": Limit(4, 40, 120, 39)}),
        ("seconds until every process refuses a revoked token", {"revocation": Revocation([0.1, 1.1])}),
        ("steady: errors", {"steady": Steady(1.0, [Minute(10, 1, 1.0, 1.0, 1)], 0, 0, 0)}),
    ],
)
def test_a_bad_figure_is_missed(title: str, changes: dict[str, object]) -> None:
    verdicts = {one.goal.title: one.verdict for one in judged_goals(whole_run(**changes))}
    assert verdicts[title] is Verdict.MISSED


def test_what_was_not_measured_is_neither_met_nor_missed() -> None:
    found = judged_goals(WideResults())
    assert len(found) == len(GOALS)
    assert {one.verdict for one in found} == {Verdict.UNKNOWN}


def test_two_processes_without_cores_of_their_own_are_not_compared_by_rate() -> None:
    found = measured(whole_run(cores=1))
    assert math.isnan(found["calls/s c=64, wide, two processes / one"])
    assert found["CPU per call c=64, wide, two processes / one"] == pytest.approx(1)


def test_one_minute_says_nothing_of_later_ones() -> None:
    found = measured(whole_run(steady=Steady(1.0, [Minute(10, 0, 1.0, 1.0, 1)], 0, 0, 0)))
    assert math.isnan(found["steady: worst p99 of a minute / the first one's"])
    assert found["steady: errors"] == 0
