"""A wide run: seed, count statements, meet callers for the first time, then narrow against wide."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from bench import machine
from bench.databases import BackEnds
from bench.placement import Placement
from bench.plan import Plan, WidePlan
from bench.processes import BenchFailed, Processes
from bench.stage import LoadGenerator, VendorServer
from bench.wide.measurement import Load
from bench.wide.parts import Parts
from bench.wide.results import WideResults
from bench.wide.stage import WideData


@dataclass(slots=True)
class WideRun:
    """One run. `say` tells how far it is."""

    plan: Plan
    wide: WidePlan
    folder: Path
    placement: Placement
    say: Callable[[str], None]
    results: WideResults = field(default_factory=WideResults)
    audit: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.results.cores = psutil.cpu_count() or 1

    def execute(self, processes: Processes, found: BackEnds) -> None:
        """Measure everything and compare the call log. Raises: BenchFailed."""
        counts = self.wide.process_counts(are_shared=found.are_shared)
        if counts[-1] > 1 and not found.are_shared:
            raise BenchFailed("several processes need BENCH_DATABASE_URL and BENCH_REDIS_URL")
        vendor = VendorServer(processes, self.placement)
        generator = LoadGenerator(processes, self.placement)
        data = WideData(processes, self.placement, vendor, found, self.folder, self.wide.sizes, say=self.say)
        load = Load(generator, vendor, self.folder)
        parts = Parts(self.plan, self.wide, self.folder, self.placement, processes, data, load, self.results, self.say)
        if url := found.environment.get("DATABASE_URL"):
            parts.count_statements(url)
        parts.meet_everyone()
        parts.compare_alone()
        if counts[-1] > 1:
            parts.compare_processes(counts)
        parts.check_together()
        if self.wide.steady_minutes:
            parts.stay_steady()
        self._compare_rows(data.audit_rows(), load.answered)

    @property
    def has_failed(self) -> bool:
        return bool(self.results.faults)

    def head(self, found: BackEnds) -> list[str]:
        """The conditions, for the report."""
        sizes = self.wide.sizes
        return [
            *machine.facts(),
            f"Gateway: {found.description}, data on {machine.file_system(self.folder)}",
            f"{sizes.describe()}; narrow: {sizes.narrow().all_callers} callers of them",
            f"Placement of one process: {self.placement.describe()}; behind the proxy they may use every core",
            f"{self.plan.rounds} rounds, {self.plan.measure_s:g} s a point; closed loop, callers in turn",
            "Every answer is checked. Figures are medians of the rounds",
        ]

    def _compare_rows(self, rows: dict[str, int], answered: int) -> None:
        """Every answered call has one row."""
        kept = rows.get("mcp success", 0)
        is_equal = kept == answered
        self.audit = [f"Audit rows: {kept:,} for {answered:,} answered calls: {'equal' if is_equal else 'NOT EQUAL'}"]
        if not is_equal:
            self.results.faults.append(f"FAILED: the audit log holds {rows}")
