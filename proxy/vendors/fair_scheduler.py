"""Fair scheduling of long work on vendors' data: slices, a bounded part of the event loop's time. docs/decisions/0024

Organizations are served round robin: one organization's many calls do not delay another's.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterator, Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from time import perf_counter
from typing import TypeVar

from gateway.lib.waiting_line import WaitingLine

T = TypeVar("T")

PAUSE_TIMES = 6  # pause per time worked: slices get at most a seventh of the time
MIN_DEBT_S = 0.0005  # less work than this brings no pause yet
LONGEST_PAUSE_S = 0.1  # bounds the pause after one long slice
INLINE_BYTES = 64 * 1024  # longer work would delay all other calls


class FairScheduler:
    """One waiting line per owner, served round robin, one slice each."""

    def __init__(self) -> None:
        self._is_busy = False
        self._line: WaitingLine[Hashable] = WaitingLine()
        self._worked_s = 0.0

    @asynccontextmanager
    async def slot(self, owner: Hashable, deadline: float | None = None) -> AsyncIterator[None]:
        """A slice of work, after its wait and pause. Raises: TimeoutError at `deadline` (loop time)."""
        if self._is_busy:
            await self._line.wait(owner, partial(self._release, owner), deadline)
        self._is_busy = True
        try:
            async with asyncio.timeout_at(deadline):
                await self._pause()
            began_s = perf_counter()
            try:
                yield
            finally:
                self._worked_s += perf_counter() - began_s
        finally:
            self._release(owner)

    async def _pause(self) -> None:
        if self._worked_s > MIN_DEBT_S:
            pause_s, self._worked_s = min(PAUSE_TIMES * self._worked_s, LONGEST_PAUSE_S), 0.0
            await asyncio.sleep(pause_s)

    def _release(self, owner: Hashable) -> None:
        self._line.move_to_end(owner)  # only now, behind owners that came during its slice
        self._is_busy = self._line.hand_over_to_next()


_ByLoop = weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, FairScheduler]
_loop_schedulers: _ByLoop = weakref.WeakKeyDictionary()
_thread_schedulers: _ByLoop = weakref.WeakKeyDictionary()
# One thread: several would compete with the event loop for the interpreter lock.
_thread = ThreadPoolExecutor(1, thread_name_prefix="long-work")


def current() -> FairScheduler:
    """The scheduler of the running loop, for slices in the loop itself."""
    return _of_loop(_loop_schedulers)


async def run_small_inline(owner: Hashable, work: Callable[[], T], size_bytes: int, deadline: float | None = None) -> T:
    """Run `work` in the event loop if `size_bytes` is small, else by `run_in_thread`. Raises: as `run_in_thread`."""
    return work() if size_bytes <= INLINE_BYTES else await run_in_thread(owner, work, deadline)


async def run_in_thread(owner: Hashable, work: Callable[[], T], deadline: float | None = None) -> T:
    """Run work that cannot be sliced in a thread, one at a time. Raises: TimeoutError before it starts; as `work`."""
    async with _of_loop(_thread_schedulers).slot(owner, deadline):
        return await asyncio.get_running_loop().run_in_executor(_thread, work)


def _of_loop(known: _ByLoop) -> FairScheduler:
    loop = asyncio.get_running_loop()
    found = known.get(loop)
    if found is None:
        found = known[loop] = FairScheduler()
    return found
