"""A deadline that counts only while this process could have noticed the answer.

Under a burst the event loop comes round late: the answer of a store may lie in the socket for longer than its deadline
before anybody looks. That is no outage of the store, and taking it for one would give up exact limits and immediate
revocation just when many call. So a timer that fires late starts again; one that fires on time means what it says.
"""

from __future__ import annotations

import asyncio
from types import TracebackType

LATE_S = 0.005
LONGEST_S = 1.0  # a loop that is late for so long cannot tell any more, and callers have waited enough


class Attention:
    """`async with Attention(0.05): ...` raises TimeoutError in the block that got no answer in time."""

    __slots__ = ("_last", "_loop", "_patience_s", "_timeout", "_timer")

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._timeout = asyncio.timeout(None)
        self._loop = asyncio.get_running_loop()
        self._last = self._loop.time() + LONGEST_S

    async def __aenter__(self) -> Attention:
        await self._timeout.__aenter__()
        self._wait()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        await self._timeout.__aexit__(kind, fault, trace)

    def _wait(self) -> None:
        due = self._loop.time() + self._patience_s
        self._timer = self._loop.call_at(due, self._look, due)

    def _look(self, due: float) -> None:
        now = self._loop.time()
        if now - due > LATE_S and now < self._last:
            self._wait()
        else:
            self._timeout.reschedule(now)
