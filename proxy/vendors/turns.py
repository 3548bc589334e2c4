"""Reading what vendors send without measure: one slice at a time, and never most of the event loop's time.

A vendor may send megabytes of messages that nobody asked for. Each is cheap, and all of them together, of many calls at
once, would keep every other call waiting. So would one organization's many calls keep those of all others, if they
stood in one line.   docs/decisions/0008
"""

from __future__ import annotations

import asyncio
import weakref
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from time import perf_counter
from typing import TypeVar

T = TypeVar("T")

PAUSE_TIMES = 6  # a seventh of the time, at most, goes to this
UNPAID_S = 0.0005
LONGEST_PAUSE_S = 0.1
IN_LOOP_BYTES = 64 * 1024  # more is work that could hold up all other calls


class Turns:
    """Who waits stands in a line of its own owner's; the owners are served one after the other, a slice each."""

    def __init__(self) -> None:
        self._is_taken = False
        self._owner: Hashable = None  # of the slice that is under way, or was the last
        self._lines: OrderedDict[Hashable, deque[asyncio.Future[None]]] = OrderedDict()  # none is empty
        self._worked_s = 0.0

    @asynccontextmanager
    async def turn(self, owner: Hashable, deadline: float | None = None) -> AsyncIterator[None]:
        """A slice of work, when it is its turn and after the pause that those before have earned the rest.

        Raises: TimeoutError when that is not before `deadline`, in the loop's time.
        """
        async with asyncio.timeout_at(deadline):
            await self._take(owner)
        try:
            async with asyncio.timeout_at(deadline):
                await self._pause()
            began_s = perf_counter()
            try:
                yield
            finally:
                self._worked_s += perf_counter() - began_s
        finally:
            self._hand_over()

    async def _pause(self) -> None:
        if self._worked_s > UNPAID_S:
            pause_s, self._worked_s = min(PAUSE_TIMES * self._worked_s, LONGEST_PAUSE_S), 0.0
            await asyncio.sleep(pause_s)

    async def _take(self, owner: Hashable) -> None:
        if not self._is_taken:
            self._is_taken, self._owner = True, owner
            return
        waiter = asyncio.get_running_loop().create_future()
        self._lines.setdefault(owner, deque()).append(waiter)
        try:
            await waiter
        except BaseException:
            if not waiter.cancel() and not waiter.cancelled():  # handed over at the moment we gave up
                self._hand_over()
            raise

    def _hand_over(self) -> None:
        if self._owner in self._lines:  # only now: who came during its slice goes first
            self._lines.move_to_end(self._owner)
        while self._lines:
            owner, line = next(iter(self._lines.items()))
            waiter = line.popleft()
            if not line:
                del self._lines[owner]
            if not waiter.done():  # else it has left
                self._owner = owner
                waiter.set_result(None)
                return
        self._is_taken = False


_ByLoop = weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Turns]
_in_loop: _ByLoop = weakref.WeakKeyDictionary()
_beside_it: _ByLoop = weakref.WeakKeyDictionary()
# One: several would take the interpreter from the event loop by turns, and hold up who waits for any other thread.
_thread = ThreadPoolExecutor(1, thread_name_prefix="long-work")


def current() -> Turns:
    """The running loop's, for slices of work in the loop itself."""
    return _of_loop(_in_loop)


async def by_size(owner: Hashable, work: Callable[[], T], size_bytes: int, deadline: float | None = None) -> T:
    """The result of work on so many bytes: at once where it is short, else `in_thread`.   Raises: as that."""
    return work() if size_bytes <= IN_LOOP_BYTES else await in_thread(owner, work, deadline)


async def in_thread(owner: Hashable, work: Callable[[], T], deadline: float | None = None) -> T:
    """The result of work that cannot be cut into slices: one at a time beside the loop, by the same rule.

    Raises: TimeoutError when its turn is not before `deadline`, in the loop's time; as `work`.
    """
    async with _of_loop(_beside_it).turn(owner, deadline):
        return await asyncio.get_running_loop().run_in_executor(_thread, work)


def _of_loop(known: _ByLoop) -> Turns:
    loop = asyncio.get_running_loop()
    found = known.get(loop)
    if found is None:
        found = known[loop] = Turns()
    return found
