"""Pure: the tables that a run prints."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import attrgetter

from bench import targets
from bench.bounds import MEGABYTE, Judgement, Verdict, judgements
from bench.figures import Spread
from bench.results import DISTURBED_CORES, Figure, Results, VendorLoad

_calls: Figure = attrgetter("calls_per_s")
_p50: Figure = attrgetter("p50_ms")
_p99: Figure = attrgetter("p99_ms")
_cpu: Figure = attrgetter("cpu_ms_per_call")


def render(results: Results, *, head: Sequence[str], audit: Sequence[str]) -> str:
    """The whole report."""
    loads = results.loads()
    parts = ["Performance report", "\n".join(head)]
    undelayed = [load for load in loads if not load.delay_ms]
    if undelayed:
        parts.append("No vendor delay (ratios to the pass-through)\n\n" + _undelayed_table(results, undelayed))
    for delay_ms in sorted({load.delay_ms for load in loads if load.delay_ms}):
        delayed = [load for load in loads if load.delay_ms == delay_ms]
        title = (
            f"Vendor that takes {delay_ms} ms: the time, what is added to the vendor's, its ratio to the pass-through's"
        )
        parts.append(f"{title}\n\n{_delayed_table(results, delayed)}")
    parts.append("Over the whole run\n\n" + _process_table(results))
    found = judgements(results)
    if found:
        parts.append(f"Bounds (median of the rounds, lowest and highest)\n\n{_bounds(found)}\n\n{_summary(found)}")
    parts += ["\n".join(lines) for lines in (audit, notes(results)) if lines]
    return "\n\n".join(parts) + "\n"


def table(rows: Sequence[Sequence[str]], *, text_columns: int = 1) -> str:
    """Columns under each other; the first row is the head, the first columns are text, the others numbers."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(
            cell.ljust(width) if column < text_columns else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def number(value: float) -> str:
    """A figure with as many digits as mean something; a dash for what was not measured."""
    if math.isnan(value):
        return "-"
    size = abs(value)
    if size >= 1000:
        return f"{value:,.0f}"
    if size >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if size >= 10 else f"{value:.2f}"


def _undelayed_table(results: Results, loads: Sequence[VendorLoad]) -> str:
    rows = [["c", "target", "calls/s", "ratio", "p50 ms", "p99 ms", "CPU ms/call", "ratio"]]
    for load in loads:
        for name in results.targets():
            if not results.at(name, load):
                continue
            calls, p50, p99, cpu = (results.spread(name, load, one).median for one in (_calls, _p50, _p99, _cpu))
            of_calls, of_cpu = (_to_pass_through(results, name, load, one) for one in (_calls, _cpu))
            rows.append(
                [str(load.connections), name, number(calls), of_calls, number(p50), number(p99), small(cpu), of_cpu]
            )
    return table(rows, text_columns=2)


def _to_pass_through(results: Results, name: str, load: VendorLoad, figure: Figure) -> str:
    return number(results.ratio(name, targets.PASS_THROUGH, load, figure).median) if name in targets.GATEWAY else ""


def small(value: float) -> str:
    """A few milliseconds or less."""
    return "-" if math.isnan(value) else f"{value:.3f}"


def _delayed_table(results: Results, loads: Sequence[VendorLoad]) -> str:
    rows = [["c", "target", "p50 ms", "+p50 ms", "ratio", "p99 ms", "+p99 ms", "CPU ms/call"]]
    for load in loads:
        for name in results.targets():
            if results.at(name, load):
                p50, p99 = (number(results.spread(name, load, one).median) for one in (_p50, _p99))
                more_p50, more_p99 = (_added(results, name, load, figure) for figure in (_p50, _p99))
                cpu = small(results.spread(name, load, _cpu).median)
                over = _added_over_pass_through(results, name, load)
                rows.append([str(load.connections), name, p50, more_p50, over, p99, more_p99, cpu])
    return table(rows, text_columns=2)


def _added(results: Results, name: str, load: VendorLoad, figure: Figure) -> str:
    """The time over the vendor's own."""
    if name == targets.DIRECT:
        return ""
    value = results.difference(name, targets.DIRECT, load, figure).median
    return "-" if math.isnan(value) else f"{value:+.2f}"


def _added_over_pass_through(results: Results, name: str, load: VendorLoad) -> str:
    if name not in targets.GATEWAY:
        return ""
    return number(results.added_ratio(name, targets.PASS_THROUGH, targets.DIRECT, load, _p50).median)


def _process_table(results: Results) -> str:
    rows = [["target", "peak RSS MB", "vendor requests per call"]]
    for name in results.targets():
        size_mb, calls = results.peak_rss_bytes(name) / MEGABYTE, results.vendor_calls_per_call(name)
        rows.append([name, number(size_mb), f"{calls:.4f}"])
    return table(rows)


def _bounds(found: Sequence[Judgement]) -> str:
    width = max(len(one.target) for one in found)
    lines: list[str] = []
    for bound in dict.fromkeys(one.bound for one in found):
        lines.append(f"{bound.title}: {bound.wanted()}")
        for one in found:
            if one.bound is bound and one.verdict is not Verdict.UNKNOWN:
                measured = f"{number(one.spread.median)} {_range(one.spread)}"
                lines.append(f"    {one.target.ljust(width)}  {measured:<24}  {one.verdict.value}")
    return "\n".join(lines)


def _range(spread: Spread) -> str:
    if math.isnan(spread.low) or spread.low == spread.high:
        return ""
    return f"({number(spread.low)} to {number(spread.high)})"


def _summary(found: Sequence[Judgement]) -> str:
    counts = {verdict: sum(one.verdict is verdict for one in found) for verdict in Verdict}
    return (
        f"{counts[Verdict.GOAL]} at the goal, {counts[Verdict.MUST]} within the bound, "
        f"{counts[Verdict.MISSED]} missed, {counts[Verdict.UNKNOWN]} not measured"
    )


def notes(results: Results) -> list[str]:
    """Points that were disturbed or failed."""
    found = []
    disturbed = results.disturbed()
    if disturbed:
        worst = max(disturbed, key=lambda point: point.foreign_cores)
        found.append(
            f"{len(disturbed)} of {len(results.points)} points were disturbed: other processes used more than"
            f" {DISTURBED_CORES} cores (up to {worst.foreign_cores:.1f}, {worst.target},"
            f" c={worst.load.connections}). Ratios suffer less than absolute figures; a quiet machine says more."
        )
    for point in results.failed():
        found.append(
            f"FAILED: {point.target}, c={point.load.connections}, {point.load.delay_ms} ms, round {point.round + 1}:"
            f" {point.bad} wrong answers, {point.unanswered} without one. {point.sample}"
        )
    return found
