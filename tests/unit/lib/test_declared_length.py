"""Content-Length as clients write it."""

from __future__ import annotations

import pytest

from gateway.lib.declared_length import declared_length


@pytest.mark.parametrize(("value", "length"), [("0", 0), ("12", 12), ("007", 7), ("9" * 18, int("9" * 18))])
def test_a_number(value: str, length: int) -> None:
    assert declared_length(value) == length


@pytest.mark.parametrize("value", ["", " 1", "-1", "+1", "1.0", "0x1", "²", "١", "1_0", "one"])
def test_what_is_none(value: str) -> None:
    assert declared_length(value) is None


def test_one_beyond_any_body() -> None:
    assert declared_length("9" * 10_000) == 10**18
