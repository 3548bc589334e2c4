"""Pure: a report as cells, and how the cells of a run stand to those of the committed report."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from bench.figures import Spread, ratio

# A cell of one round has no spread of its own. Repeated runs of one tree on one machine differ by about so much.
LEAST_NOISE = 0.05


class Cell(msgspec.Struct, frozen=True):
    """One figure over the rounds of a run. `is_ratio`: two figures of one run, so other machines have it too."""

    name: str
    spread: Spread
    is_ratio: bool


class CommittedReport(msgspec.Struct, frozen=True):
    """`machine` identifies the computer; cells of other `options` mean other things."""

    machine: str
    options: str
    cells: list[Cell]


class Change(msgspec.Struct, frozen=True):
    """A cell's median now over the committed one; `noise` is what the spreads of both alone can make of 1."""

    name: str
    before: float
    now: float
    noise: float

    @property
    def ratio(self) -> float:
        return ratio(self.now, self.before)

    @property
    def has_moved(self) -> bool:
        return abs(math.log(self.ratio)) > math.log(1 + self.noise) if self.ratio > 0 else not math.isnan(self.ratio)


def changes(now: Iterable[Cell], before: Iterable[Cell], *, same_machine: bool) -> list[Change]:
    """Cells of both reports; on another machine, those that are ratios only."""
    known = {cell.name: cell for cell in before}
    found = []
    for cell in now:
        earlier = known.get(cell.name)
        if earlier is not None and (same_machine or (cell.is_ratio and earlier.is_ratio)):
            noise = max(LEAST_NOISE, half_width(cell.spread) + half_width(earlier.spread))
            found.append(Change(cell.name, earlier.spread.median, cell.spread.median, noise))
    return [change for change in found if not math.isnan(change.ratio)]


def half_width(spread: Spread) -> float:
    """How far the rounds lie from their median, as a share of it."""
    if not spread.median or math.isnan(spread.median):
        return 0.0
    return max(spread.high - spread.median, spread.median - spread.low) / abs(spread.median)


def changes_table(found: Sequence[Change]) -> list[list[str]]:
    """Rows for a table, head first."""
    rows = [["cell", "committed", "now", "ratio", "noise", ""]]
    for one in found:
        mark = "moved" if one.has_moved else ""
        rows.append([one.name, f"{one.before:,.3f}", f"{one.now:,.3f}", f"{one.ratio:.2f}", f"{one.noise:.2f}", mark])
    return rows


def write_report(report: CommittedReport, file: Path) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(msgspec.json.format(msgspec.json.encode(report)) + b"\n")


def read_report(file: Path) -> CommittedReport | None:
    """None where no report was committed. Raises: msgspec.DecodeError."""
    return msgspec.json.decode(file.read_bytes(), type=CommittedReport) if file.exists() else None


def compared(report: CommittedReport, committed: CommittedReport | None) -> tuple[list[str], list[Change]]:
    """Lines about the committed report, and the changes since then."""
    if committed is None:
        return ["There is no committed report of such a run."], []
    if committed.options != report.options:
        return [f"The committed report is of other options: {committed.options}"], []
    same = committed.machine == report.machine
    found = changes(report.cells, committed.cells, same_machine=same)
    lines = [] if same else [f"The committed report is of another machine ({committed.machine}): ratios only."]
    moved = sum(one.has_moved for one in found)
    return [*lines, f"{moved} of {len(found)} cells moved by more than their noise."], found


def cells_of(figures: Mapping[str, Spread], *, is_ratio: bool) -> list[Cell]:
    return [Cell(name, value, is_ratio) for name, value in figures.items() if not math.isnan(value.median)]
