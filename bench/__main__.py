"""`python -m bench`: set the stage, measure, print the report. `make bench` runs it."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from bench import machine, targets
from bench.comparison import against_committed, point_cells
from bench.databases import BackEnds, back_ends
from bench.gateway import GatewayServer
from bench.measurement import Measurement
from bench.placement import Placement, place
from bench.plan import Plan, WidePlan, read_plan
from bench.preparation import CALLERS
from bench.processes import BenchFailed, Processes
from bench.profiling import profile_target, require_profiler
from bench.report import render
from bench.results import MeasuredPoint, Results
from bench.stage import LoadGenerator, VendorServer, start_pass_through
from bench.targets import Target
from bench.wide.report import goals_of, wide_cells
from bench.wide.report import render as render_wide
from bench.wide.run import WideRun

# A list of tools is no call, and leaves no row.
UNLIKE_MCP_CALLS = frozenset({targets.CLI, targets.MCP_LIST})
ROOT = Path(__file__).resolve().parent.parent
OVERTIME_FACTOR, OVERTIME_S = 3, 120  # a run that hangs ends itself


class Run:
    """One run: its stage, its results, what it says about the audit log."""

    def __init__(self, plan: Plan, folder: Path, placement: Placement) -> None:
        self.plan, self.folder, self.placement = plan, folder, placement
        self.results = Results()
        self.audit: list[str] = []
        self.has_failed = False

    def execute(self, processes: Processes, found: BackEnds) -> None:
        """Set the stage, measure everything, compare the audit log. Raises: BenchFailed."""
        vendor = VendorServer(processes, self.placement)
        load = LoadGenerator(processes, self.placement)
        gateway = None
        if targets.GATEWAY & set(self.plan.targets):
            lists = targets.MCP_LIST in self.plan.targets
            gateway = GatewayServer(processes, self.placement, vendor, found, self.folder, lists=lists)
        stage = self._targets(processes, vendor, gateway)
        measurement = Measurement(self.plan, load, vendor, stage)
        measurement.warm_up()
        self.results = measurement.run(_Progress(self.plan))
        answered = {
            name: measurement.warm_up_answers[name] + self.results.answered([name])
            for name in stage
            if name in targets.GATEWAY
        }
        if self.plan.profile_s:
            vendor.set(0, self.plan.form)
            for name in answered:
                profile, count = profile_target(
                    processes, load, stage[name], seconds=self.plan.profile_s, folder=self.folder
                )
                answered[name] += count
                print("\n".join([f"\nProfile of {name}, c=16", *profile.lines()]), flush=True)
        if gateway is not None:
            self._compare(gateway.audit_rows(), answered)

    def _targets(self, processes: Processes, vendor: VendorServer, gateway: GatewayServer | None) -> dict[str, Target]:
        session_id = vendor.open_session()
        found = {}
        for name in self.plan.targets:
            if name == targets.DIRECT:
                found[name] = vendor.direct(session_id)
            elif name == targets.PASS_THROUGH:
                found[name] = start_pass_through(processes, self.placement, vendor, session_id)
            elif gateway is not None:
                found[name] = gateway.target(name)
        return found

    def _compare(self, rows: Mapping[str, int], answered: Mapping[str, int]) -> None:
        """Every answered call has one row, and there is no other row."""
        wanted = {
            "cli success": answered.get(targets.CLI, 0),
            "mcp success": sum(count for name, count in answered.items() if name not in UNLIKE_MCP_CALLS),
        }
        is_equal = dict(rows) == {name: count for name, count in wanted.items() if count}
        detail = ", ".join(f"{name} {rows.get(name, 0):,} of {count:,}" for name, count in wanted.items())
        self.audit = [
            f"Audit rows: {sum(rows.values()):,} for {sum(wanted.values()):,} answered calls ({detail}):"
            + (" equal" if is_equal else " NOT EQUAL")
        ]
        if not is_equal:
            self.audit.append(f"FAILED: the audit log holds {dict(rows)}")
            self.has_failed = True

    def head(self, found: BackEnds) -> list[str]:
        """The conditions, for the report."""
        plan, disk = self.plan, machine.file_system(self.folder)
        return [
            *machine.facts(),
            f"Gateway: one process, {found.description}, data on {disk}; {CALLERS} callers share the load",
            f"Placement: {self.placement.describe()}; database servers are not moved",
            f"{plan.rounds} rounds, {plan.measure_s:g} s a point after {plan.warm_up_s:g} s of warm-up; closed loop",
            f"Vendor: {plan.form} replies of 1 KB. Every answer is checked. Figures are medians of the rounds",
        ]


class _Progress:
    """One line on standard error, written over where that is a terminal."""

    def __init__(self, plan: Plan) -> None:
        self._total = sum(1 for _ in plan.points())
        self._done = 0

    def __call__(self, point: MeasuredPoint) -> None:
        self._done += 1
        line = (
            f"{self._done}/{self._total} round {point.round + 1} {point.target} c={point.load.connections}"
            f" {point.load.delay_ms} ms: {point.calls_per_s:,.0f}/s p50 {point.p50_ms:.2f} p99 {point.p99_ms:.2f} ms"
        )
        _say(line)


def execute(plan: Plan, environ: Mapping[str, str]) -> int:
    """One whole run; the exit code."""
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    if plan.profile_s:
        require_profiler()
    if plan.wide is not None:
        return execute_wide(plan, plan.wide, environ, place(cores))
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="gateway-bench-") as name:
        folder = Path(name).resolve()
        run = Run(plan, folder, place(cores))
        with back_ends(environ) as found, Processes(ROOT, folder) as processes:
            run.execute(processes, found)
            head = run.head(found)
    sys.stderr.write("\r\033[K" if sys.stderr.isatty() else "")
    head.append(f"The run took {time.monotonic() - began_s:.0f} s")
    options = f"{plan.form} replies; {found.description}"
    cells = point_cells(run.results, targets.PASS_THROUGH)
    compared = against_committed(cells, kind="targets", options=options, commits=plan.commits)
    print(render(run.results, head=head, audit=run.audit), compared, sep="\n", end="", flush=True)
    if plan.json_file is not None:
        document = {"head": head, "audit": run.audit, "points": run.results.points}
        plan.json_file.write_bytes(msgspec.json.format(msgspec.json.encode(document)))
    return 1 if run.has_failed or run.results.failed() else 0


def execute_wide(plan: Plan, wide: WidePlan, environ: Mapping[str, str], placement: Placement) -> int:
    """One whole wide run; the exit code."""
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="gateway-bench-") as name:
        folder = Path(name).resolve()
        run = WideRun(plan, wide, folder, placement, _say)
        with back_ends(environ) as found, Processes(ROOT, folder) as processes:
            run.execute(processes, found)
            head = run.head(found)
    sys.stderr.write("\r\033[K" if sys.stderr.isatty() else "")
    head.append(f"The run took {time.monotonic() - began_s:.0f} s")
    options = f"{wide.sizes.describe()}; {found.description}"
    compared = against_committed(wide_cells(run.results), kind="wide", options=options, commits=plan.commits)
    print(render_wide(run.results, head=head, audit=run.audit), compared, sep="\n", end="", flush=True)
    if plan.json_file is not None:
        goals = goals_of(run.results)
        document = {"head": head, "audit": run.audit, "wide": {"goals": goals, "results": run.results}}
        plan.json_file.write_bytes(msgspec.json.format(msgspec.json.encode(document)))
    return 1 if run.has_failed or run.results.matrix().failed() else 0


def _say(line: str) -> None:
    """One line on standard error, written over where that is a terminal."""
    start, end = ("\r\033[K", "") if sys.stderr.isatty() else ("", "\n")
    sys.stderr.write(start + line + end)
    sys.stderr.flush()


def _end(number: int, _: object) -> None:
    if number == signal.SIGALRM:
        raise BenchFailed("The run took far longer than planned.")
    raise KeyboardInterrupt


def main() -> int:
    """Measure; 0 unless something failed to run."""
    options = [*shlex.split(os.environ.get("BENCH_OPTIONS", "")), *sys.argv[1:]]
    if "--pages" in options:
        from bench import pages  # it needs Django, and the suite's settings

        return pages.main([option for option in options if option != "--pages"])
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGALRM):
        signal.signal(number, _end)
    plan = read_plan(sys.argv[1:])
    estimated_s = plan.estimated_s()
    measured = f"{sum(1 for _ in plan.points())} points" if plan.wide is None else plan.wide.sizes.describe()
    sys.stderr.write(f"About {estimated_s:.0f} s for {measured}...\n")
    signal.alarm(OVERTIME_FACTOR * round(estimated_s) + OVERTIME_S)
    return _guarded(lambda: execute(plan, os.environ))


def _guarded(run: Callable[[], int]) -> int:
    """The exit code, also of a run that cannot go on or is stopped."""
    try:
        return run()
    except BenchFailed as fault:
        sys.stderr.write(f"\nThe bench failed: {fault}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("\nStopped.\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
