"""Pure: which cores the measured process gets, and which everything around it."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Placement:
    """Both empty: nothing is pinned."""

    target: frozenset[int] = frozenset()
    others: frozenset[int] = frozenset()

    def describe(self) -> str:
        """One sentence for the report."""
        if not self.target:
            return "nothing is pinned: there is one core, or the system cannot pin"
        return (
            f"pass-through and gateway pinned to core {_listed(self.target)} (one at work at a time);"
            f" vendor and load generator to {_listed(self.others)}"
        )


def place(cores: AbstractSet[int]) -> Placement:
    """The last core alone for the measured process, the others for the rest; nothing is pinned on a single core."""
    if len(cores) < 2:
        return Placement()
    target = max(cores)
    return Placement(frozenset({target}), frozenset(cores - {target}))


def _listed(cores: AbstractSet[int]) -> str:
    return ", ".join(map(str, sorted(cores)))
