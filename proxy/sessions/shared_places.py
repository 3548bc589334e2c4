"""Places that each count for several holders, such as an organization and a subject of it. Each holder has a bound."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable


class SharedPlaces:
    """One event loop. `most`: the bound of each holder, in the order in which `take` gets them."""

    def __init__(self, *most: int) -> None:
        self._most = most
        self._taken: Counter[Hashable] = Counter()

    def taken(self, holder: Hashable) -> int:
        return self._taken[holder]

    def take(self, *holders: Hashable) -> bool:
        """Whether all of them had one left; then it is to be given back."""
        if any(self._taken[each] >= most for each, most in zip(holders, self._most, strict=True)):
            return False
        self._taken.update(holders)
        return True

    def give_back(self, *holders: Hashable) -> None:
        self._taken.subtract(holders)
        for each in holders:
            if not self._taken[each]:
                del self._taken[each]
