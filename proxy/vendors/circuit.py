"""Circuit breaker for one way to a vendor, as immutable values. Pure: no I/O, no clock. docs/decisions/0023

closed --failures in a row--> open --pause over--> half open --trial failed--> open, for twice as long
   ^                                                  |
   +------------------- trial answered ---------------+
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum

# Failures in a row. A round number: a vendor that is gone costs few deadlines, and one lost connection opens nothing.
FAILURES_UNTIL_OPEN = 5
# The first pause, which doubles with each failed trial. A round number, twice what connecting may take.
OPEN_S = 10.0
# So a vendor that is back gets calls again within a minute.
LONGEST_OPEN_S = 60.0


class CircuitState(StrEnum):
    """Values of the API and of the shared circuits."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


@dataclass(frozen=True, slots=True)
class Circuit:
    """Times are seconds of the caller's clock."""

    failures: int = 0  # in a row
    openings: int = 0  # in a row; each doubles the pause
    until_s: float | None = None  # end of the pause; None while closed
    trial: int = 0  # number of the trial in flight; 0 for none
    trials: int = 0  # so far; makes the numbers
    trial_until_s: float = math.inf  # until then the trial holds back other calls

    def state(self, now_s: float) -> CircuitState:
        if self.until_s is None:
            return CircuitState.CLOSED
        return CircuitState.OPEN if now_s < self.until_s else CircuitState.HALF_OPEN

    def may_pass(self, now_s: float) -> bool:
        state = self.state(now_s)
        is_free = not self.trial or now_s >= self.trial_until_s
        return state is CircuitState.CLOSED or (state is CircuitState.HALF_OPEN and is_free)

    def wait_s(self, now_s: float) -> float:
        """Seconds until a call may pass; 1 while a trial is in flight."""
        return max(1.0, (self.until_s or now_s) - now_s)

    def trying(self, until_s: float = math.inf) -> Circuit:
        """The circuit with one more trial; its number is `trial`. Another call may try from `until_s`."""
        number = self.trials + 1
        return replace(self, trial=number, trials=number, trial_until_s=until_s)

    def given_up(self, trial: int) -> Circuit:
        # A trial that showed nothing makes way for the next one.
        return replace(self, trial=0) if self.trial == trial else self

    def failed(self, now_s: float) -> Circuit:
        """One more failure. Failures of calls sent before the circuit opened do not prolong the pause."""
        state = self.state(now_s)
        failures = self.failures + 1
        if state is CircuitState.OPEN or (state is CircuitState.CLOSED and failures < FAILURES_UNTIL_OPEN):
            return replace(self, failures=failures)
        pause_s = min(LONGEST_OPEN_S, OPEN_S * 2**self.openings)
        return replace(self, failures=failures, openings=min(self.openings + 1, 10), until_s=now_s + pause_s, trial=0)

    def joined(self, failures: int, until_s: float) -> Circuit:
        """Open as another process found it, unless it is open here already."""
        if self.until_s is not None:
            return self
        return replace(self, failures=max(failures, self.failures), openings=1, until_s=until_s)


CLOSED = Circuit()
