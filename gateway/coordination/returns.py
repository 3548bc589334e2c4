"""When a store came back on a new connection, and may have lost its last seconds."""

from __future__ import annotations

import math
from collections import deque

KEPT = 32


class Returns:
    """Times are monotonic seconds, added in their order."""

    def __init__(self) -> None:
        self._times_s: deque[float] = deque()
        self._forgotten_until_s = -math.inf

    def add(self, at_s: float) -> None:
        if len(self._times_s) == KEPT:
            self._forgotten_until_s = self._times_s.popleft()
        self._times_s.append(at_s)

    def first_after(self, time_s: float) -> float:
        """Infinity for none; minus infinity if it is forgotten."""
        times_s = self._times_s
        if not times_s or times_s[-1] <= time_s:
            return math.inf
        if time_s < self._forgotten_until_s:
            return -math.inf
        return next(at_s for at_s in times_s if at_s > time_s)
