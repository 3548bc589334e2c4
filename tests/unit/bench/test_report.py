"""The report: tables, bounds, disturbed and failed points."""

from __future__ import annotations

import math

import pytest

from bench import targets
from bench.report import number, render, table
from bench.results import Results, VendorLoad
from tests.unit.bench.points import make_point


@pytest.mark.parametrize(
    ("value", "text"),
    [(12345.6, "12,346"), (1000, "1,000"), (999.4, "999"), (42.25, "42.2"), (3.14159, "3.14"), (math.nan, "-")],
)
def test_numbers_have_the_digits_that_mean_something(value: float, text: str) -> None:
    assert number(value) == text


def test_columns_stand_under_each_other() -> None:
    assert table([["a", "value"], ["longer", "1"]]).splitlines() == ["a       value", "------  -----", "longer      1"]


def whole_run() -> Results:
    results = Results()
    for load in (VendorLoad(0, 1), VendorLoad(0, 16), VendorLoad(0, 64), VendorLoad(50, 1), VendorLoad(50, 16)):
        base_ms = float(load.delay_ms + 1)
        results.add(make_point(targets.DIRECT, load, good=20_000, p50_ms=base_ms, p99_ms=base_ms + 1))
        results.add(make_point(targets.PASS_THROUGH, load, good=8_000, p50_ms=base_ms + 1, p99_ms=base_ms + 3))
        results.add(make_point(targets.CLI, load, good=4_000, p50_ms=base_ms + 1.5, p99_ms=base_ms + 10))
    return results


def test_the_whole_report() -> None:
    text = render(whole_run(), head=["On a machine"], audit=["Audit rows: 5 for 5 answered calls: equal"])
    lines = text.splitlines()
    assert lines[0] == "Performance report"
    assert "On a machine" in lines
    assert "64  gateway cli, jwt    2,000   0.50    2.50    11.0        0.100   2.00" in lines
    assert "16  gateway cli, jwt    52.5    +1.50   1.50    61.0    +9.00        0.100" in lines
    assert "calls/s c=64 / pass-through: >= 0.4 (goal 0.65)" in lines
    verdicts = [line.split()[-2:] for line in lines if line.startswith("    gateway cli, jwt")]
    assert [" ".join(words) for words in verdicts] == [
        *("must met", "must met", "4.40 MISSED", "goal met", "must met", "goal met", "goal met")
    ]
    assert "Audit rows: 5 for 5 answered calls: equal" in lines
    assert "FAILED" not in text
    assert "disturbed" not in text


def test_the_vendor_itself_is_shown_as_it_is() -> None:
    lines = render(whole_run(), head=[], audit=[]).splitlines()
    assert "16  vendor direct       51.0                    52.0                 0.020" in lines


def test_failures_and_disturbances_are_reported() -> None:
    results = Results(
        [
            make_point(targets.DIRECT, foreign_cores=0.75),
            make_point(targets.PASS_THROUGH, bad=3, unanswered=2, sample="502 b'no'"),
        ]
    )
    text = render(results, head=[], audit=[])
    assert "1 of 2 points were disturbed" in text
    assert "up to 0.8, vendor direct, c=16" in text
    assert "FAILED: pass-through, c=16, 0 ms, round 1: 3 wrong answers, 2 without one. 502 b'no'" in text


def test_a_run_without_the_gateway_has_no_bounds() -> None:
    text = render(Results([make_point(targets.DIRECT)]), head=[], audit=[])
    assert "Bounds" not in text
    assert "Vendor that takes" not in text
    assert "No vendor delay" in text


def test_rounds_are_shown_as_a_range() -> None:
    results = Results()
    for round_number, good in enumerate([1000, 2000, 3000]):
        results.add(make_point(targets.PASS_THROUGH, VendorLoad(0, 64), round_number, good=4000))
        results.add(make_point(targets.MCP_KEY, VendorLoad(0, 64), round_number, good=good))
    lines = render(results, head=[], audit=[]).splitlines()
    bound = lines.index("calls/s c=64 / pass-through: >= 0.4 (goal 0.65)")
    assert lines[bound + 1].split("  ", 4)[2:] == [targets.MCP_KEY, "0.50 (0.25 to 0.75)", "     must met"]
