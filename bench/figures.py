"""Pure: percentiles, medians and ratios of rounds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spread:
    """One figure over several rounds."""

    median: float
    low: float
    high: float


def percentile(ordered: Sequence[float], percent: float) -> float:
    """The smallest value that at least `percent` of the ascending values do not exceed; NaN of none (nearest rank)."""
    if not 0 < percent <= 100:
        raise ValueError("a percentile lies above 0 and at most at 100")
    if not ordered:
        return math.nan
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def median(values: Sequence[float]) -> float:
    """The middle value, or the mean of the two in the middle; NaN of none."""
    ordered = sorted(values)
    if not ordered:
        return math.nan
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def spread(values: Sequence[float]) -> Spread:
    """Median, smallest and largest of the values that are numbers; NaN thrice when there is none."""
    numbers = [value for value in values if not math.isnan(value)]
    if not numbers:
        return Spread(math.nan, math.nan, math.nan)
    return Spread(median(numbers), min(numbers), max(numbers))


def ratio(value: float, base: float) -> float:
    """`value / base`, NaN when there is nothing to divide by."""
    return value / base if base else math.nan


def ratios_per_round(values: Mapping[int, float], bases: Mapping[int, float]) -> list[float]:
    """One ratio for every round that has both figures: what the machine did meanwhile is in both of them."""
    return [ratio(values[number], bases[number]) for number in sorted(values.keys() & bases.keys())]


def differences_per_round(values: Mapping[int, float], bases: Mapping[int, float]) -> list[float]:
    """One difference for every round that has both figures."""
    return [values[number] - bases[number] for number in sorted(values.keys() & bases.keys())]
