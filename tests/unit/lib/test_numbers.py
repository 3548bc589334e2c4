"""Numbers of pages have separators from a thousand on, those of the language."""

from __future__ import annotations

import pytest
from django.utils import translation

from gateway.lib.numbers import grouped


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
