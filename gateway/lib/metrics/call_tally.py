"""Calls as the event loop counts them: about two microseconds each. `settle` moves the counts into the figures.

The hot path writes to lists and one dictionary, without a lock: only the event loop counts and settles. Values of enums
would cost a Python call for each hash, so keys are plain strings.   docs/decisions/0076
"""

from __future__ import annotations

from bisect import bisect_left

from gateway.lib.metrics.figures import Histogram
from gateway.lib.metrics.names import AUDIT_COMMIT_SECONDS, CACHE, CALL_SECONDS, CALLS, LIMITER

# Vendor, route, outcome, part of the result cache, the limiter's count, its result; empty for what does not apply.
CallKey = tuple[str, str, str, str, str, str]


class SecondsTally:
    """A histogram's counts and, last, its sum."""

    __slots__ = ("_bounds", "_labels", "_row", "_target")

    def __init__(self, target: Histogram, *labels: str) -> None:
        self._target, self._labels, self._bounds = target, labels, target.bounds
        self._row: list[float] = [0] * (len(self._bounds) + 2)

    def observe(self, seconds: float) -> None:
        row = self._row
        row[bisect_left(self._bounds, seconds)] += 1
        row[-1] += seconds

    def settle(self) -> None:
        row, self._row = self._row, [0] * len(self._row)
        if any(row):
            self._target.add_counts(row[:-1], row[-1], *self._labels)

    def forget(self) -> None:
        self._row = [0] * len(self._row)


calls: dict[CallKey, int] = {}
auth, session, vendor, audit, total = (
    SecondsTally(CALL_SECONDS, phase) for phase in ("auth", "session", "vendor", "audit", "total")
)
audit_commit = SecondsTally(AUDIT_COMMIT_SECONDS)
_tallies = (auth, session, vendor, audit, total, audit_commit)


def settle() -> None:
    """The figures have all calls until now. Runs in the event loop that counts."""
    counted = calls.copy()
    calls.clear()
    for (vendor_slug, route, outcome, cache, count, result), number in counted.items():
        CALLS.add(vendor_slug, route, outcome, amount=number)
        if cache:
            CACHE.add(cache, amount=number)
        if count:
            LIMITER.add(count, result, amount=number)
    for tally in _tallies:
        tally.settle()


def forget() -> None:
    """Drop what is not settled."""
    calls.clear()
    for tally in _tallies:
        tally.forget()
