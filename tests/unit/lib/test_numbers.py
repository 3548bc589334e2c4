"""Numbers of pages have separators from a thousand on, those of the language."""

from __future__ import annotations

import pytest
from django.utils import translation

from gateway.lib.numbers import grouped, percents


@pytest.mark.parametrize(
    ("number", "english", "german"),
    [
        (0, "0", "0"),
        (999, "999", "999"),
        (1_000, "1,000", "1.000"),
        (1_234_567, "1,234,567", "1.234.567"),
        (-12_345, "-12,345", "-12.345"),
    ],
)
def test_separators_begin_at_a_thousand(number: int, english: str, german: str) -> None:
    with translation.override("en"):
        assert grouped(number) == english
    with translation.override("de"):
        assert grouped(number) == german


@pytest.mark.parametrize(
    ("part", "whole", "decimals", "english", "german"),
    [
        (1, 3, 0, "33%", "33 %"),
        (2, 3, 0, "67%", "67 %"),
        (2, 3, 1, "66.7%", "66,7 %"),
        (5, 5, 0, "100%", "100 %"),
        (0, 0, 1, "0.0%", "0,0 %"),
    ],
)
def test_a_percentage_is_written_as_the_language_does(
    part: int, whole: int, decimals: int, english: str, german: str
) -> None:
    with translation.override("en"):
        assert percents(whole, decimals=decimals)(part) == english
    with translation.override("de"):
        assert percents(whole, decimals=decimals)(part) == german
