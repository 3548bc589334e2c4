"""A run beside the committed report: which cells are compared, and which of them moved."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from bench import comparison
from bench.cells import Cell, CommittedReport, cells_of, changes, changes_table, compared, read_report, write_report
from bench.figures import Spread
from bench.results import Results, VendorLoad
from bench.targets import DIRECT, MCP_KEY, PASS_THROUGH
from tests.unit.bench.points import make_point


def cell(name: str, median: float, width: float = 0.0, *, is_ratio: bool = False) -> Cell:
    return Cell(name, Spread(median, median - width, median + width), is_ratio)


def report(*cells: Cell, machine: str = "this", options: str = "SQLite") -> CommittedReport:
    return CommittedReport(machine, options, list(cells))


def test_a_cell_has_moved_when_it_left_the_noise_of_both_runs() -> None:
    (steady,) = changes([cell("c", 114, 5)], [cell("c", 100, 10)], same_machine=True)
    assert (steady.ratio, steady.has_moved) == (1.14, False)
    (moved,) = changes([cell("c", 120, 5)], [cell("c", 100, 10)], same_machine=True)
    assert moved.has_moved
    (fell,) = changes([cell("c", 80, 0)], [cell("c", 100, 0)], same_machine=True)
    assert fell.has_moved


def test_one_round_has_the_least_noise() -> None:
    (within,) = changes([cell("c", 104)], [cell("c", 100)], same_machine=True)
    (beyond,) = changes([cell("c", 106)], [cell("c", 100)], same_machine=True)
    assert (within.has_moved, beyond.has_moved) == (False, True)


def test_on_another_machine_ratios_only_are_compared() -> None:
    now = [cell("calls/s", 2000), cell("ratio", 0.5, is_ratio=True)]
    before = report(cell("calls/s", 1000), cell("ratio", 0.5, is_ratio=True), machine="other")
    lines, found = compared(report(*now), before)
    assert [one.name for one in found] == ["ratio"]
    assert lines == [
        "The committed report is of another machine (other): ratios only.",
        "0 of 1 cells moved by more than their noise.",
    ]
    assert len(compared(report(*now), report(*before.cells))[1]) == 2


def test_other_options_are_not_compared() -> None:
    lines, found = compared(report(cell("c", 1), options="PostgreSQL"), report(cell("c", 1)))
    assert found == []
    assert lines == ["The committed report is of other options: SQLite"]


def test_cells_of_one_report_only_and_cells_of_zero_are_left_out() -> None:
    found = changes([cell("new", 1), cell("zero", 1)], [cell("gone", 1), cell("zero", 0)], same_machine=True)
    assert found == []


def test_the_table_marks_what_moved() -> None:
    rows = changes_table(changes([cell("c", 120)], [cell("c", 100)], same_machine=True))
    assert rows[1] == ["c", "100.000", "120.000", "1.20", "0.05", "moved"]


def test_what_was_not_measured_is_no_cell() -> None:
    assert cells_of({"c": Spread(math.nan, math.nan, math.nan)}, is_ratio=True) == []


def test_ratios_are_taken_inside_a_round() -> None:
    load = VendorLoad(0, 16)
    points = [make_point(name, load, number) for name in (DIRECT, PASS_THROUGH, MCP_KEY) for number in (0, 1)]
    found = {one.name: one for one in comparison.point_cells(Results(points), PASS_THROUGH)}
    relative = found[f"{MCP_KEY} c=16: calls/s, ratio to {PASS_THROUGH}"]
    assert (relative.is_ratio, relative.spread.median) == (True, 1.0)
    assert not found[f"{MCP_KEY} c=16: calls/s"].is_ratio
    assert not any(name.startswith((DIRECT, PASS_THROUGH)) and one.is_ratio for name, one in found.items())


def test_a_report_is_kept_only_on_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison.machine, "identity", lambda: "this")
    file = tmp_path / "wide.json"

    def against(value: float, *, commits: bool) -> str:
        return comparison.against_committed(
            [cell("c", value)], kind="wide", options="SQLite", commits=commits, folder=tmp_path
        )

    assert "no committed report" in against(1, commits=False)
    assert read_report(file) is None
    assert "Written: wide.json" in against(1, commits=True)
    assert read_report(file) == report(cell("c", 1))
    assert "1 of 1 cells moved" in against(2, commits=False)
    assert read_report(file) == report(cell("c", 1))


def test_the_file_gives_back_the_report(tmp_path: Path) -> None:
    kept = report(cell("c", 1.5, 0.25, is_ratio=True))
    write_report(kept, tmp_path / "results" / "targets.json")
    assert read_report(tmp_path / "results" / "targets.json") == kept
