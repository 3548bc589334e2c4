"""When calls to a vendor that cannot be reached are held back, and when one is let through to see. No I/O, no clock.

Closed, calls go through and failures in a row are counted. Open, none does. When the pause is over the circuit is half
open: one call is the trial, and what becomes of it closes the circuit or opens it for twice as long.

docs/decisions/0008
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum

FAILURES_UNTIL_OPEN = 5
OPEN_S = 10.0
LONGEST_OPEN_S = 60.0


class CircuitState(StrEnum):
    """The wire value."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


@dataclass(frozen=True, slots=True)
class Circuit:
    """What is known of one way to a vendor. Times are seconds of whatever clock the caller uses.

    `failures` counts those in a row; `until_s` is None while the circuit is closed; `trial` is the number of the call
    that is under way to see, 0 for none, which holds back others until `trial_until_s`; `trials` is how many there have
    been.
    """

    failures: int = 0
    openings: int = 0
    until_s: float | None = None
    trial: int = 0
    trials: int = 0
    trial_until_s: float = math.inf

    def state(self, now_s: float) -> CircuitState:
        """What a reader is told."""
        if self.until_s is None:
            return CircuitState.CLOSED
        return CircuitState.OPEN if now_s < self.until_s else CircuitState.HALF_OPEN

    def may_pass(self, now_s: float) -> bool:
        """Whether a call may go through now. One that does while the circuit is half open has to be the trial."""
        state = self.state(now_s)
        is_free = not self.trial or now_s >= self.trial_until_s
        return state is CircuitState.CLOSED or (state is CircuitState.HALF_OPEN and is_free)

    def wait_s(self, now_s: float) -> float:
        """For how long nothing is let through; a moment while a trial is under way."""
        return max(1.0, (self.until_s or now_s) - now_s)

    def trying(self, until_s: float = math.inf) -> Circuit:
        """With a trial under way; its number is `trial`. At `until_s` another call may try as well."""
        number = self.trials + 1
        return replace(self, trial=number, trials=number, trial_until_s=until_s)

    def given_up(self, trial: int) -> Circuit:
        """The call with this number has ended. If nobody learned anything from it, the next one may try."""
        return replace(self, trial=0) if self.trial == trial else self

    def answered(self) -> Circuit:
        """The vendor spoke: whatever it said, it is there."""
        return CLOSED

    def failed(self, now_s: float) -> Circuit:
        """One more failure. Those of calls that were under way when the circuit opened do not prolong the pause."""
        state = self.state(now_s)
        failures = self.failures + 1
        if state is CircuitState.OPEN or (state is CircuitState.CLOSED and failures < FAILURES_UNTIL_OPEN):
            return replace(self, failures=failures)
        pause_s = min(LONGEST_OPEN_S, OPEN_S * 2**self.openings)
        return replace(self, failures=failures, openings=min(self.openings + 1, 10), until_s=now_s + pause_s, trial=0)

    def joined(self, failures: int, until_s: float) -> Circuit:
        """Open as another process found it, unless this one has opened it already."""
        if self.until_s is not None:
            return self
        return replace(self, failures=max(failures, self.failures), openings=1, until_s=until_s)


CLOSED = Circuit()
