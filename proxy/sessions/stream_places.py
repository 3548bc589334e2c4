"""Bounds the streams of one process that tell callers of changes: each holds a connection. docs/decisions/0110"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

from orgs.principal import Principal


class StreamPlaces:
    """One event loop."""

    def __init__(self, *, of_all: int, of_organization: int, of_subject: int) -> None:
        self._limits = (of_all, of_organization, of_subject)
        self._taken: Counter[Hashable] = Counter()

    @property
    def taken(self) -> int:
        return self._taken["all"]

    def take(self, principal: Principal) -> bool:
        """Whether there was a place; the stream gives it back at its end."""
        holders = _holders(principal)
        if any(self._taken[each] >= most for each, most in zip(holders, self._limits, strict=True)):
            return False
        self._taken.update(holders)
        return True

    def give_back(self, principal: Principal) -> None:
        self._taken.subtract(_holders(principal))
        self._taken += Counter()  # drops those at zero


def _holders(principal: Principal) -> tuple[Hashable, ...]:
    return "all", principal.org_id, (principal.org_id, principal.subject)
