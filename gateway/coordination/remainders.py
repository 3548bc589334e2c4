"""What the shared store last said was left in windows that are nearly used up, for as long as that can matter."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from gateway.coordination.rules import Rule
from gateway.coordination.store import Admission

MAX_REMEMBERED = 5_000


class Remainder(NamedTuple):
    """`left` admissions, said at `said_s`; none before `closed_until_s` if it was a refusal. Monotonic seconds."""

    left: int
    said_s: float
    closed_until_s: float


class Remainders:
    """Bounded: what was said longest ago is forgotten first. For any thread, and once per call: well below 1 µs."""

    def __init__(self, processes: int, monotonic: Callable[[], float]) -> None:
        self._processes = max(1, processes)
        self._monotonic = monotonic
        self._said: OrderedDict[tuple[str, str], tuple[int, float, float]] = OrderedDict()

    def note(self, admission: Admission, key: str) -> Admission:
        """Remember what the store just said; returned as it is.

        Only what is less than a process's share: of more, the share is the bound anyway.
        """
        rule, left = admission.rule, admission.remaining
        if left and left >= rule.limit // self._processes:
            if self._said:
                self._said.pop((rule.name, key), None)
            return admission
        name, now_s = (rule.name, key), self._monotonic()
        self._said.pop(name, None)  # no lock: each step is whole, and none needs that the one before still holds
        self._said[name] = (left, now_s, now_s + admission.retry_after_s)  # to make a Remainder takes as long again
        if len(self._said) > MAX_REMEMBERED:
            self._said.popitem(last=False)
        return admission

    def of(self, rule: Rule, key: str) -> Remainder | None:
        """What was last said; None if nothing was, or if all that was counted then has left the window."""
        said = self._said.get((rule.name, key))
        if said is None:
            return None
        found = Remainder(*said)
        return found if self._monotonic() - found.said_s < rule.window_s else None
