"""A deadline that counts only while this process could have noticed the answer.

Under a burst the event loop comes round late: the answer of a store may lie in the socket for longer than its deadline
before anybody looks. That is no outage of the store, and taking it for one would give up exact limits and immediate
revocation just when many call. So a timer that fires late looks again after the next
pass of the loop, a few times; one that fires on time means what it says.
"""

from __future__ import annotations

import asyncio
from types import TracebackType

LATE_S = 0.005
# To connect and to be let in takes several passes of the loop. Looks beyond the deadline, each a pass at least: a store
# that hangs costs little more than the deadline, however busy this process is.
LATE_LOOKS = 4


class Attention:
    """`async with Attention(0.05): ...` raises TimeoutError in the block that got no answer in time."""

    __slots__ = ("_late_looks", "_loop", "_patience_s", "_timeout", "_timer")

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._timeout = asyncio.timeout(None)
        self._loop = asyncio.get_running_loop()
        self._late_looks = 0

    async def __aenter__(self) -> Attention:
        await self._timeout.__aenter__()
        self._wait(self._patience_s)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        await self._timeout.__aexit__(kind, fault, trace)

    def _wait(self, time_s: float) -> None:
        due = self._loop.time() + time_s
        self._timer = self._loop.call_at(due, self._look, due)

    def _look(self, due: float) -> None:
        now = self._loop.time()
        if now - due > LATE_S and self._late_looks < LATE_LOOKS:
            self._late_looks += 1
            self._wait(LATE_S)
        else:
            self._timeout.reschedule(now)
