"""A run beside the committed report of its kind, and the making of that report."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from pathlib import Path

from bench import machine, targets
from bench.cells import Cell, CommittedReport, cells_of, changes_table, compared, read_report, write_report
from bench.report import table
from bench.results import Figure, Results

FOLDER = Path(__file__).resolve().parent / "results"
_FIGURES: Sequence[tuple[str, Figure]] = (
    ("calls/s", attrgetter("calls_per_s")),
    ("CPU ms/call", attrgetter("cpu_ms_per_call")),
    ("p99 ms", attrgetter("p99_ms")),
)


def against_committed(cells: Sequence[Cell], *, kind: str, options: str, commits: bool, folder: Path = FOLDER) -> str:
    """The part of the report that compares; with `commits` this run becomes the committed one of its kind."""
    report = CommittedReport(machine.identity(), options, list(cells))
    file = folder / f"{kind}.json"
    lines, found = compared(report, read_report(file))
    parts = ["Beside the committed report", "\n".join(lines)]
    if found:
        parts.append(table(changes_table(found)))
    if commits:
        write_report(report, file)
        parts.append(f"Written: {file.name}. Commit it.")
    return "\n\n".join(parts) + "\n"


def point_cells(results: Results, base: str) -> list[Cell]:
    """Pure: figures of every target and load, and their ratios to those of `base`."""
    found: list[Cell] = []
    for load in results.loads():
        delay = f" {load.delay_ms} ms vendor" if load.delay_ms else ""
        for name in results.targets():
            if not results.at(name, load):
                continue
            for title, figure in _FIGURES:
                label = f"{name} c={load.connections}{delay}: {title}"
                found += cells_of({label: results.spread(name, load, figure)}, is_ratio=False)
                if name not in {base, targets.DIRECT}:
                    relative = {f"{label}, ratio to {base}": results.ratio(name, base, load, figure)}
                    found += cells_of(relative, is_ratio=True)
    return found
