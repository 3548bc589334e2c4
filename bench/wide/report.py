"""Pure: the tables of a wide run, and its cells for the comparison with a committed report."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import attrgetter

from bench.bounds import MEGABYTE, Verdict
from bench.cells import Cell, cells_of
from bench.figures import Spread, median
from bench.report import notes, number, small, table
from bench.results import Figure, Results, VendorLoad
from bench.wide.goals import KILOBYTE, JudgedGoal, judged_goals, more_than_known
from bench.wide.results import KNOWN, NARROW, WIDE, FirstCalls, Memory, Steady, WideResults

_FIGURES: Sequence[tuple[str, Figure]] = (
    ("CPU ms/call", attrgetter("cpu_ms_per_call")),
    ("calls/s", attrgetter("calls_per_s")),
    ("p99 ms", attrgetter("p99_ms")),
)
_p50: Callable[[FirstCalls], float] = attrgetter("cpu_p50_ms")
_p99: Callable[[FirstCalls], float] = attrgetter("cpu_p99_ms")
OFTEN = 0.005


def render(results: WideResults, *, head: Sequence[str], audit: Sequence[str]) -> str:
    """The whole report."""
    matrix = results.matrix()
    parts = ["Wide performance report", "\n".join(head)]
    parts.append("Narrow against wide (ratios to narrow of the same number of processes)\n\n" + _matrix(matrix))
    parts.append("Cores at work\n\n" + "\n".join([_cores(results), *limited_by_machine(results)]))
    parts.append("First calls, one by one\n\n" + _first_calls(results))
    if results.memory is not None:
        parts.append("Memory of the process\n\n" + _memory(results.memory))
    parts += [_statements(results), _together(results)]
    if results.steady is not None:
        parts.append(_steady(results.steady))
    parts.append("Goals\n\n" + _goals(judged_goals(results)))
    parts += ["\n".join(lines) for lines in (audit, notes(matrix), results.faults) if lines]
    return "\n\n".join(part for part in parts if part) + "\n"


def base_of(target: str) -> str:
    """The narrow target of as many processes."""
    return NARROW + target.removeprefix(WIDE) if target.startswith(WIDE) else target


def _matrix(matrix: Results) -> str:
    head = ["c", "target", "calls/s", "ratio", "p50 ms", "p99 ms", "ratio", "CPU ms/call", "ratio", "vendor requests"]
    rows = [head]
    for load in matrix.loads():
        for name in matrix.targets():
            if not matrix.at(name, load):
                continue
            cpu, calls, p99 = (matrix.spread(name, load, figure).median for _, figure in _FIGURES)
            p50 = matrix.spread(name, load, attrgetter("p50_ms")).median
            of_cpu, of_calls, of_p99 = (_ratio(matrix, name, load, figure) for _, figure in _FIGURES)
            requests = f"{matrix.vendor_calls_per_call(name):.4f}"
            row = [number(calls), of_calls, number(p50), number(p99), of_p99, small(cpu), of_cpu, requests]
            rows.append([str(load.connections), name, *row])
    return table(rows, text_columns=2)


def _ratio(matrix: Results, name: str, load: VendorLoad, figure: Figure) -> str:
    base = base_of(name)
    return "" if base == name else number(matrix.ratio(name, base, load, figure).median)


def _cores(results: WideResults) -> str:
    rows = [["target", "gateway", "whole machine", "peak RSS MB of a process"]]
    for name in results.matrix().targets():
        own = median([point.target_cpu_s / point.seconds for point in results.points if point.target == name])
        size_mb = results.matrix().peak_rss_bytes(name) / MEGABYTE
        rows.append([name, number(own), number(median(results.busy_cores.get(name, []))), number(size_mb)])
    return table(rows)


def limited_by_machine(results: WideResults) -> list[str]:
    """Lines about the targets whose rate is that of the machine."""
    names = [name for name in results.busy_cores if results.is_limited_by_machine(name)]
    if not names:
        return []
    return [
        f"No core was idle with: {'; '.join(names)}.",
        f"Load generator, vendor, proxy, database and other programs had the rest of the {results.cores} cores,",
        "so these rates are the machine's. CPU per call is the figure to read.",
    ]


def _first_calls(results: WideResults) -> str:
    rows = [["kind", "calls", "statements", "vendor requests", "CPU p50 ms", "more", "CPU p99 ms", "more"]]
    for each in results.first_calls:
        more = [_added(results, each, figure) for figure in (_p50, _p99)]
        figures = [number(each.statements), number(each.vendor_requests)]
        cpu = [small(each.cpu_p50_ms), more[0], small(each.cpu_p99_ms), more[1]]
        rows.append([each.name, str(each.requests), *figures, *cpu])
    return table(rows) + "\nStatements are those beside the commit of the call's record, CPU is until the next call."


def _added(results: WideResults, each: FirstCalls, figure: Callable[[FirstCalls], float]) -> str:
    if each.name == KNOWN:
        return ""
    value = more_than_known(results, each.name, figure)
    return "-" if math.isnan(value) else f"{value:+.3f}"


def _memory(found: Memory) -> str:
    return "\n".join(
        [
            f"{found.before / MEGABYTE:.0f} MB at the start, {found.after / MEGABYTE:.0f} MB with everything known",
            *(f"{title}: {number(size / KILOBYTE)} kB" for title, size in _memory_of_each(found).items()),
        ]
    )


def _memory_of_each(found: Memory) -> dict[str, float]:
    """Bytes."""
    return {
        "an organization": found.organization,
        "a caller": found.caller,
        "a tool list with its session": found.tool_list,
    }


def _statements(results: WideResults) -> str:
    """The statements that a kind of call runs more often than now and then."""
    found = {each.name: each.statements_by_name for each in results.first_calls if each.statements_by_name}
    if not found:
        return "Statements were not counted: that needs PostgreSQL."
    texts = dict.fromkeys(sql for counts in found.values() for sql, count in counts.items() if count >= OFTEN)
    rows = [["statements of a call", *found]]
    rows += [
        [sql or "check of a connection", *(f"{counts.get(sql, 0):.3f}" for counts in found.values())] for sql in texts
    ]
    return table(rows)


def _together(results: WideResults) -> str:
    lines = []
    if (limit := results.limit) is not None:
        lines.append(
            f"A caller with a limit of {limit.allowed} sent {limit.sent} calls over {limit.processes} processes:"
            f" {limit.answered} were answered"
        )
    if (revocation := results.revocation) is not None:
        shown = ", ".join(f"{seconds:.3f}" for seconds in revocation.seconds)
        lines.append(f"A revoked token was refused by each process after {shown} s")
    return "\n".join(lines)


def _steady(found: Steady) -> str:
    rows = [["minute", "calls", "errors", "p50 ms", "p99 ms", "RSS MB"]]
    for index, each in enumerate(found.minutes, start=1):
        figures = [number(each.p50_ms), number(each.p99_ms), number(each.rss_bytes / MEGABYTE)]
        rows.append([str(index), f"{each.calls:,}", str(each.errors), *figures])
    tracked = f"{found.tracked_before:,} objects tracked before, {found.tracked_after:,} after"
    return (
        f"Steady, wide, {found.per_s:,.0f} calls a second\n\n{table(rows)}\n"
        f"{found.left:,} objects were left for the collector; {tracked}"
    )


def _goals(found: Sequence[JudgedGoal]) -> str:
    rows = [["goal", "wanted", "measured", ""]]
    rows += [[one.goal.title, one.goal.wanted(), number(one.spread.median), one.verdict.value] for one in found]
    counts = {verdict: sum(one.verdict is verdict for one in found) for verdict in Verdict}
    summary = ", ".join(f"{count} {verdict.value}" for verdict, count in counts.items())
    return f"{table(rows, text_columns=2)}\n\n{summary}"


def goals_of(results: WideResults) -> list[dict[str, object]]:
    """For the JSON document."""
    return [
        {
            "goal": one.goal.title,
            "wanted": one.goal.wanted(),
            "measured": one.spread.median,
            "verdict": one.verdict.value,
            "met": None if one.verdict is Verdict.UNKNOWN else one.verdict is not Verdict.MISSED,
        }
        for one in judged_goals(results)
    ]


def wide_cells(results: WideResults) -> list[Cell]:
    """CPU per call first. Counts and sizes are the same on every machine, as ratios are."""
    matrix = results.matrix()
    own: dict[str, Spread] = {}
    relative: dict[str, Spread] = {}
    for title, figure in _FIGURES:
        for load in matrix.loads():
            for name in matrix.targets():
                label = f"{name} c={load.connections}: {title}"
                own[label] = matrix.spread(name, load, figure)
                if base_of(name) != name:
                    relative[f"{label}, ratio to narrow"] = matrix.ratio(name, base_of(name), load, figure)
    for each in results.first_calls:
        for title, value in (("CPU p50 ms", each.cpu_p50_ms), ("CPU p99 ms", each.cpu_p99_ms)):
            own[f"{each.name}: {title}"] = _single(value)
        relative[f"{each.name}: statements"] = _single(each.statements)
    if (memory := results.memory) is not None:
        relative |= {f"bytes of {title}": _single(size) for title, size in _memory_of_each(memory).items()}
    return [*cells_of(own, is_ratio=False), *cells_of(relative, is_ratio=True)]


def _single(value: float) -> Spread:
    return Spread(value, value, value)
