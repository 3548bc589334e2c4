"""Pure: a rate limit as data."""

from __future__ import annotations

from dataclasses import dataclass

EXACT_LOG_MAX = 100


@dataclass(frozen=True, slots=True)
class Rule:
    """At most `limit` admissions in any `window_s` seconds, counted under `name` and a key. Spec: §8 · D20"""

    name: str
    limit: int
    window_s: int

    @property
    def keeps_log(self) -> bool:
        # Small limits keep the time of each admission, larger ones count in sixty slices of the window.
        return self.limit <= EXACT_LOG_MAX

    def shared_among(self, processes: int) -> Rule:
        """The share of one process while Redis is unavailable, at least 1. Spec: D23"""
        return Rule(self.name, max(1, self.limit // max(1, processes)), self.window_s)
