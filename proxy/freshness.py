"""How long rows in memory may be used.   docs/decisions/0050

An epoch confirms rows up to their age limit. While epochs cannot be read, and after the store may have lost the last
seconds of its memory, their age counts.
"""

from __future__ import annotations

import time

from gateway.coordination.store import CoordinationStore

# Rows live up to this part of the age limit less, each for a time of its own: rows that were loaded together are not
# loaded again together.
SPREAD_OF_AGE = 0.25
# After the store was lost and came back, older rows are used for at most this long. It may have come back with the
# memory of a moment before a bump.
REWOUND_AGE_S = 30.0


class Freshness:
    """Ages in monotonic seconds. `spread` is 0 to 1: how much earlier than others an entry ends."""

    def __init__(self, store: CoordinationStore, *, max_age_s: float) -> None:
        self._store = store
        self.max_age_s = max_age_s

    def until_s(self, loaded_at_s: float, spread: float) -> float:
        """Until when an epoch may confirm rows that were loaded then."""
        return loaded_at_s + self.max_age_s * (1.0 - SPREAD_OF_AGE * spread)

    def is_confirmed_by_epochs(self, as_of_s: float, fresh_until_s: float, spread: float) -> bool:
        """Whether equal epochs say that the rows still hold."""
        now_s = time.monotonic()
        if now_s >= fresh_until_s:
            return False
        # The first return after the rows counts: further ones give them no more time.
        return now_s < self._store.returns.first_after(as_of_s) + REWOUND_AGE_S * (1.0 - spread)
