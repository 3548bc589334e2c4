"""The cores of the measured process and of the others."""

from __future__ import annotations

import pytest

from bench.placement import place


@pytest.mark.parametrize(
    ("cores", "target", "others"),
    [({0, 1}, {1}, {0}), ({2, 5, 7}, {7}, {2, 5}), ({3}, set(), set()), (set(), set(), set())],
)
def test_the_measured_process_has_a_core_alone(cores: set[int], target: set[int], others: set[int]) -> None:
    found = place(cores)
    assert (found.target, found.others) == (target, others)


def test_the_report_says_how_it_is() -> None:
    assert "core 1" in place({0, 1}).describe()
    assert "to 0, 2" in place({0, 2, 3}).describe()
    assert "nothing is pinned" in place({0}).describe()
