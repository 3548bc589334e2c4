"""Figures of one measured point, and of several together."""

from __future__ import annotations

import math

import pytest

from bench.results import Results, VendorLoad
from tests.unit.bench.points import make_point


def test_figures_of_one_cell() -> None:
    point = make_point("a")
    assert (point.calls_per_s, point.cpu_ms_per_call, point.p99_over_p50) == (1000.0, 0.2, 2.0)
    assert not point.has_failed
    assert not point.is_disturbed


def test_a_cell_without_answers_has_no_figures() -> None:
    point = make_point("a", good=0, p50_ms=math.nan, p99_ms=math.nan)
    assert math.isnan(point.cpu_ms_per_call)
    assert math.isnan(point.p99_over_p50)
    assert point.has_failed


@pytest.mark.parametrize("changes", [{"bad": 1}, {"unanswered": 1}, {"good": 0}])
def test_anything_but_right_answers_is_a_failure(changes: dict[str, int]) -> None:
    results = Results([make_point("a"), make_point("b", **changes)])
    assert [point.target for point in results.failed()] == ["b"]


def test_places_come_in_the_order_of_delay_and_connections() -> None:
    loads = [VendorLoad(50, 1), VendorLoad(0, 64), VendorLoad(0, 1), VendorLoad(50, 16)]
    results = Results(make_point("a", load) for load in loads)
    assert results.loads() == [VendorLoad(0, 1), VendorLoad(0, 64), VendorLoad(50, 1), VendorLoad(50, 16)]


def test_ratio_and_difference_pair_the_rounds() -> None:
    load = VendorLoad(0, 64)
    results = Results()
    for number, (ours, bare) in enumerate([(400, 1000), (100, 500), (700, 1000)]):
        results.add(make_point("bare", load, number, good=bare, p50_ms=float(number + 1)))
        results.add(make_point("ours", load, number, good=ours, p50_ms=float(2 * number + 3)))
    found = results.ratio("ours", "bare", load, lambda point: point.calls_per_s)
    assert (found.median, found.low, found.high) == (0.4, 0.2, 0.7)
    added = results.difference("ours", "bare", load, lambda point: point.p50_ms)
    assert (added.median, added.low, added.high) == (3.0, 2.0, 4.0)


def test_a_target_that_was_not_measured_gives_no_number() -> None:
    results = Results([make_point("ours")])
    assert math.isnan(results.ratio("ours", "bare", VendorLoad(0, 16), lambda point: point.calls_per_s).median)
    assert math.isnan(results.peak_rss_bytes("bare"))
    assert math.isnan(results.vendor_calls_per_call("bare"))


def test_sums_over_all_cells_of_a_target() -> None:
    results = Results(
        [
            make_point("a", number=0, answered=100, vendor_calls=103, peak_rss_bytes=5),
            make_point("a", number=1, answered=200, vendor_calls=200, peak_rss_bytes=9),
            make_point("b", answered=7),
        ]
    )
    assert results.answered(["a"]) == 300
    assert results.answered(["a", "b"]) == 307
    assert results.vendor_calls_per_call("a") == pytest.approx(1.01)
    assert results.peak_rss_bytes("a") == 9


def test_disturbed_cells_are_known() -> None:
    results = Results([make_point("a", foreign_cores=0.19), make_point("b", foreign_cores=0.3)])
    assert [point.target for point in results.disturbed()] == ["b"]


def test_what_two_targets_add_to_a_third_is_compared_round_by_round() -> None:
    load = VendorLoad(50, 1)
    results = Results()
    for number, (ours, bare, floor) in enumerate([(52.0, 51.0, 50.0), (56.0, 52.0, 50.0), (53.0, 50.0, 50.0)]):
        for name, p50_ms in (("ours", ours), ("bare", bare), ("floor", floor)):
            results.add(make_point(name, load, number, p50_ms=p50_ms))
    added = results.added_ratio("ours", "bare", "floor", load, lambda one: one.p50_ms)
    assert (added.median, added.low, added.high) == (2.5, 2.0, 3.0), "the round in which nothing was added is left out"
