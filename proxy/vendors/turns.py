"""Reading what vendors send without measure: one slice at a time, and never most of the event loop's time.

A vendor may send megabytes of messages that nobody asked for. Each is cheap, and all of them together, of many calls at
once, would keep every other call waiting.   docs/decisions/0008
"""

from __future__ import annotations

import asyncio
import weakref
from time import perf_counter
from types import TracebackType

PAUSE_TIMES = 4  # a fifth of the time, at most, goes to this
UNPAID_S = 0.002
LONGEST_PAUSE_S = 0.1


class Turns:
    """`async with turns`: a slice of work, after those before it and after the pause that they have earned the rest."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._worked_s = 0.0
        self._began_s = 0.0

    async def __aenter__(self) -> None:
        await self._lock.acquire()
        if self._worked_s > UNPAID_S:
            pause_s, self._worked_s = min(PAUSE_TIMES * self._worked_s, LONGEST_PAUSE_S), 0.0
            try:
                await asyncio.sleep(pause_s)
            except BaseException:
                self._lock.release()
                raise
        self._began_s = perf_counter()

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._worked_s += perf_counter() - self._began_s
        self._lock.release()


_by_loop: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Turns] = weakref.WeakKeyDictionary()


def current() -> Turns:
    """The running loop's."""
    loop = asyncio.get_running_loop()
    found = _by_loop.get(loop)
    if found is None:
        found = _by_loop[loop] = Turns()
    return found
