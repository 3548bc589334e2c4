"""The figures of a run with a hanging Redis, their bounds, and the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

FIGURES_PATH = "/-/figures"
LATENESS_MS = 100.0
WAIT_MS = 100.0
STATEMENTS_PER_S = 2_000.0
IN_FORCE_S = 5.0
IN_FORCE_ONCE_BACK_S = 1.0
IN_FORCE_ELSEWHERE_S = 2.0


@dataclass
class Figures:
    """Of one run. Times of revocations are None where one was not in force before the run gave up."""

    bearers: int
    calls_per_s: float
    hung_s: float
    lateness_well_ms: float = 0.0
    lateness_ms: float = 0.0
    own_lateness_ms: float = 0.0
    wait_ms: float = 0.0
    local_share: float = 0.0
    statements_per_s: float = 0.0
    worst_statements_per_s: float = 0.0
    statuses: Counter[int] = field(default_factory=Counter)
    slowest_call_ms: float = 0.0
    share_of_limit: int = 0
    admitted_per_process: list[int] = field(default_factory=list)
    in_force_s: dict[str, float | None] = field(default_factory=dict)
    in_force_once_back_s: dict[str, float | None] = field(default_factory=dict)
    in_force_elsewhere_s: dict[str, float | None] = field(default_factory=dict)
    pending_bumps: int = 0

    def lines(self) -> list[tuple[bool, str]]:
        """(whether the bound holds, one line) of each figure."""
        late = f"{self.own_lateness_ms:.0f} ms (bound {LATENESS_MS:.0f})"
        with_load = f"{self.lateness_ms:.0f} ms with the load of the machine, {self.lateness_well_ms:.0f} ms before"
        mean, worst = f"{self.statements_per_s:.0f}", f"{self.worst_statements_per_s:.0f} in the worst seconds"
        admitted, share = self.admitted_per_process, self.share_of_limit
        found = [
            (
                sum(self.statuses.values()) > 0,
                f"calls while Redis hung, by status: {dict(self.statuses)}",
            ),
            (set(self.statuses) <= {200}, f"calls answered with 503: {self.statuses[503]} (bound 0)"),
            (self.own_lateness_ms <= LATENESS_MS, f"worst lateness of the event loop: {late}; {with_load}"),
            (self.wait_ms <= WAIT_MS, f"longest wait of a call for Redis: {self.wait_ms:.0f} ms (bound {WAIT_MS:.0f})"),
            (self.local_share > 0.9, f"admissions that the process counted by itself: {self.local_share:.1%}"),
            (
                self.worst_statements_per_s <= STATEMENTS_PER_S,
                f"PostgreSQL, statements a second: {mean}, {worst} (bound {STATEMENTS_PER_S:.0f})",
            ),
            (
                0 < max(admitted, default=0) <= share,
                f"calls of one subject that each process admitted: {admitted} (bound {share})",
            ),
            (self.pending_bumps == 0, f"bumps left in the outbox at the end: {self.pending_bumps} (bound 0)"),
        ]
        return [
            *found,
            *_in_force("in force while Redis hung", IN_FORCE_S, self.in_force_s),
            *_in_force("in force once Redis was back", IN_FORCE_ONCE_BACK_S, self.in_force_once_back_s),
            *_in_force("in force on the others", IN_FORCE_ELSEWHERE_S, self.in_force_elsewhere_s),
        ]

    @property
    def holds(self) -> bool:
        """Whether every bound holds."""
        return all(good for good, _ in self.lines())

    def __str__(self) -> str:
        head = f"{self.bearers} active bearers, {self.calls_per_s:.0f} calls/s, Redis hung for {self.hung_s:.0f} s"
        lines = [f"  {'ok    ' if good else 'BROKEN'} {line}" for good, line in self.lines()]
        return "\n".join([head, *lines, f"  slowest call: {self.slowest_call_ms:.0f} ms"])


def _in_force(title: str, bound_s: float, times: Mapping[str, float | None]) -> list[tuple[bool, str]]:
    """A line for each revocation."""
    return [
        (
            time_s is not None and time_s <= bound_s,
            f"{which}: {title} {'not at all' if time_s is None else f'after {time_s:.2f} s'} (bound {bound_s:.0f})",
        )
        for which, time_s in times.items()
    ]
