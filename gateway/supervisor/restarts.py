"""Pure: restart backoff of programs that ended."""

from __future__ import annotations

from dataclasses import dataclass, field

MAX_RESTARTS = 5
FIRST_DELAY_S = 1.0
# A program that ran this long started well, so its end is a new fault and resets the count.
STEADY_S = 60.0


@dataclass(slots=True)
class Restarts:
    counts: dict[str, int] = field(default_factory=dict)

    def next_delay_s(self, name: str, *, ran_s: float) -> float | None:
        """Seconds until the next start: 1, 2, 4, 8, 16, then None (give up)."""
        count = 0 if ran_s >= STEADY_S else self.counts.get(name, 0)
        if count >= MAX_RESTARTS:
            return None
        self.counts[name] = count + 1
        return FIRST_DELAY_S * 2.0**count
