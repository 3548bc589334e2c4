"""Rate-limit windows that are nearly used up, kept until they end, so that a Redis failure does not reopen them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from gateway.coordination.rules import Rule
from gateway.coordination.store import Admission

MAX_KNOWN = 5_000  # about 1.5 MB


class KnownQuota(NamedTuple):
    """`left` at the last answer. After a refusal nothing is left before `closed_until_s`. Monotonic seconds."""

    left: int
    read_at_s: float
    closed_until_s: float


class LastKnownQuota:
    """At most MAX_KNOWN, the oldest answer dropped first. Thread-safe."""

    def __init__(self, processes: int, monotonic: Callable[[], float]) -> None:
        self._processes = max(1, processes)
        self._monotonic = monotonic
        self._known: OrderedDict[tuple[str, str], tuple[int, float, float]] = OrderedDict()

    def record(self, admission: Admission, key: str) -> Admission:
        # Runs once for each call: well below 1 µs. Where more than the share is left, the share is the bound anyway.
        rule, left = admission.rule, admission.remaining
        if left and left >= rule.limit // self._processes:
            if self._known:
                self._known.pop((rule.name, key), None)
            return admission
        name, now_s = (rule.name, key), self._monotonic()
        self._known.pop(name, None)  # no lock: each step is atomic, and none relies on the one before
        self._known[name] = (
            left,
            now_s,
            now_s + admission.retry_after_s,
        )  # a plain tuple: KnownQuota() doubles the time
        if len(self._known) > MAX_KNOWN:
            self._known.popitem(last=False)
        return admission

    def of(self, rule: Rule, key: str) -> KnownQuota | None:
        """The last answer; None if there is none, or if its window has ended."""
        known = self._known.get((rule.name, key))
        if known is None:
            return None
        found = KnownQuota(*known)
        return found if self._monotonic() - found.read_at_s < rule.window_s else None
