"""Times at which a store came back."""

from __future__ import annotations

import math

from gateway.coordination.returns import KEPT, Returns


def test_the_first_return_after_a_time_is_the_one_that_counts() -> None:
    returns = Returns()
    assert returns.first_after(0.0) == math.inf
    for at_s in (10.0, 20.0, 30.0):
        returns.add(at_s)
    assert [returns.first_after(time_s) for time_s in (5.0, 10.0, 25.0, 30.0)] == [10.0, 20.0, 30.0, math.inf]


def test_what_is_forgotten_counts_as_long_ago() -> None:
    returns = Returns()
    for number in range(KEPT + 5):
        returns.add(float(number))
    assert returns.first_after(3.0) == -math.inf
    assert returns.first_after(4.0) == 5.0
    assert returns.first_after(KEPT + 3.5) == KEPT + 4.0
