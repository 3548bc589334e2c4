"""A timeout that does not count time in which the event loop was busy."""

from __future__ import annotations

import asyncio
from types import TracebackType

# A reply may lie in the socket past its deadline because the loop is late. To take that for an outage of Redis would
# give up exact limits and immediate revocation under load.
LATE_S = 0.005  # a timer that fires later than this shows that the loop was busy
# Extra checks after the deadline, each at least one pass of the loop: connecting and authenticating take several.
# The bound keeps the cost of a Redis that hangs close to the deadline, however busy this process is.
MAX_RECHECKS = 4


class BusyAwareTimeout:
    """`async with BusyAwareTimeout(0.05): ...` raises TimeoutError in the block after that many seconds."""

    __slots__ = ("_loop", "_rechecks", "_timeout", "_timeout_s", "_timer")

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._timeout = asyncio.timeout(None)
        self._loop = asyncio.get_running_loop()
        self._rechecks = 0

    async def __aenter__(self) -> BusyAwareTimeout:
        await self._timeout.__aenter__()
        self._schedule(self._timeout_s)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        await self._timeout.__aexit__(kind, fault, trace)

    def _schedule(self, time_s: float) -> None:
        due = self._loop.time() + time_s
        self._timer = self._loop.call_at(due, self._on_timer, due)

    def _on_timer(self, due: float) -> None:
        now = self._loop.time()
        # The reply may be in the socket: the loop reads it before this timer fires again.
        if now - due > LATE_S and self._rechecks < MAX_RECHECKS:
            self._rechecks += 1
            self._schedule(LATE_S)
        else:
            self._timeout.reschedule(now)
