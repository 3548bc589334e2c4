"""Percentiles, medians, ratios of rounds."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.figures import differences_per_round, median, percentile, ratio, ratios_per_round, spread


@pytest.mark.parametrize(
    ("percent", "expected"), [(50, 50), (95, 95), (99, 99), (99.5, 100), (100, 100), (1, 1), (0.1, 1)]
)
def test_percentile_is_the_nearest_rank(percent: float, expected: float) -> None:
    assert percentile([float(value) for value in range(1, 101)], percent) == expected


def test_percentiles_of_few_values() -> None:
    assert percentile([7.0], 99) == 7.0
    assert percentile([1.0, 9.0], 50) == 1.0
    assert math.isnan(percentile([], 50))


@pytest.mark.parametrize("percent", [0, -1, 100.1])
def test_a_percentile_out_of_range_is_refused(percent: float) -> None:
    with pytest.raises(ValueError, match="above 0"):
        percentile([1.0], percent)


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0.1, 100))
def test_a_percentile_is_a_value_that_enough_do_not_exceed(values: list[float], percent: float) -> None:
    found = percentile(sorted(values), percent)
    assert found in values
    assert sum(value <= found for value in values) >= len(values) * percent / 100 - 1e-9


@pytest.mark.parametrize(("values", "expected"), [([3.0], 3.0), ([9.0, 1.0, 5.0], 5.0), ([1.0, 2.0, 3.0, 10.0], 2.5)])
def test_median(values: list[float], expected: float) -> None:
    assert median(values) == expected


def test_median_of_none_is_no_number() -> None:
    assert math.isnan(median([]))


def test_spread_leaves_out_what_is_no_number() -> None:
    found = spread([4.0, math.nan, 2.0, 9.0])
    assert (found.median, found.low, found.high) == (4.0, 2.0, 9.0)
    assert math.isnan(spread([math.nan]).median)


def test_a_ratio_to_nothing_is_no_number() -> None:
    assert ratio(6.0, 4.0) == 1.5
    assert math.isnan(ratio(6.0, 0.0))


def test_ratios_are_taken_round_by_round() -> None:
    # The machine was half as fast in the second round: the ratio does not notice, that of the medians would.
    ours, bare = {0: 500.0, 1: 250.0, 2: 600.0}, {0: 1000.0, 1: 500.0, 2: 1000.0}
    assert ratios_per_round(ours, bare) == [0.5, 0.5, 0.6]
    assert median(ratios_per_round(ours, bare)) == 0.5


def test_rounds_that_one_side_lacks_do_not_count() -> None:
    assert ratios_per_round({0: 1.0, 1: 2.0}, {1: 4.0, 2: 8.0}) == [0.5]
    assert differences_per_round({0: 1.0, 1: 2.0}, {1: 4.0}) == [-2.0]
