"""Shares of the organizations in a seeded log."""

from __future__ import annotations

import pytest

from bench.log_at_size import USUAL_ROWS, _organizations
from bench.log_seed import share_of


def test_the_shares_are_the_whole_log_and_fall() -> None:
    shares = [share_of(number, 1_000) for number in range(1, 1_001)]
    assert sum(shares) == pytest.approx(1)
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == pytest.approx(0.0316, abs=0.0001)


@pytest.mark.parametrize(("rows", "usual"), [(1_000_000, 1), (10_000_000, 1), (30_000_000, 3), (300_000_000, 208)])
def test_the_usual_organization_has_as_many_rows_in_a_larger_log(rows: int, usual: int) -> None:
    assert _organizations(rows, 1_000) == {"largest": 1, "usual": usual, "middle": 500}
    assert rows * share_of(usual, 1_000) <= USUAL_ROWS
