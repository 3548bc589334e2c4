"""An epoch that every call depends on, read once in a while by one call instead of by all.   docs/decisions/0052"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable

from gateway.coordination.store import CoordinationUnavailable

EVERY_S = 0.5
# A change is seen within a second: older values are not used, and a read takes milliseconds.
USED_FOR_S = 0.9


class PolledEpoch:
    """One event loop. There is no background task: an idle process asks nothing, a busy loop uses no old value."""

    def __init__(self, read: Callable[[], Awaitable[str]], monotonic: Callable[[], float]) -> None:
        """`read` raises CoordinationUnavailable."""
        self._read = read
        self._monotonic = monotonic
        self._value = ""
        self._read_at_s = -math.inf  # when the read of `_value` began
        self._reading: asyncio.Task[CoordinationUnavailable | None] | None = None

    def refresh(self) -> None:
        """Start a read if one is due. It runs beside what the call does next."""
        if self._reading is None and self._monotonic() - self._read_at_s >= EVERY_S:
            self._start()

    def young(self) -> str | None:
        """The epoch if it was read less than USED_FOR_S ago."""
        return self._value if self._monotonic() - self._read_at_s < USED_FOR_S else None

    async def current(self) -> str:
        """The epoch as it was at most USED_FOR_S ago. Raises: CoordinationUnavailable."""
        if self.young() is None:
            fault = await asyncio.shield(self._reading or self._start())
            if fault is not None:
                raise fault
        return self._value

    def learn(self, value: str, asked_at_s: float) -> None:
        """Take a value that another read found."""
        if asked_at_s >= self._read_at_s:
            self._value, self._read_at_s = value, asked_at_s

    def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()

    def _start(self) -> asyncio.Task[CoordinationUnavailable | None]:
        self._reading = asyncio.ensure_future(self._attempt())
        return self._reading

    async def _attempt(self) -> CoordinationUnavailable | None:
        asked_at_s = self._monotonic()
        try:
            self.learn(await self._read(), asked_at_s)
        except CoordinationUnavailable as fault:  # raised by a call that finds no young value
            return fault
        finally:
            self._reading = None
        return None
