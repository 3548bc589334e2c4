"""Pure: when a program that has ended is started again, and when to give up on it."""

from __future__ import annotations

from dataclasses import dataclass, field

MOST_RESTARTS = 5
FIRST_DELAY_S = 1.0
# A program that ran this long had started well: what ends it then is a new fault.
STEADY_S = 60.0


@dataclass(slots=True)
class Restarts:
    """Counts the restarts of each program by its name."""

    counts: dict[str, int] = field(default_factory=dict)

    def next_delay_s(self, name: str, *, ran_s: float) -> float | None:
        """How long to wait before the next start: 1, 2, 4, 8, 16 seconds, then None: give up."""
        count = 0 if ran_s >= STEADY_S else self.counts.get(name, 0)
        if count >= MOST_RESTARTS:
            return None
        self.counts[name] = count + 1
        return FIRST_DELAY_S * 2.0**count
