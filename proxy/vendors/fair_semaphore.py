"""A semaphore shared fairly among owners: round-robin waiting lines, and a dynamic threshold.

An owner may hold `of_free` times the free places, so several get fewer each and a few stay free for a newcomer.
"""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict, deque
from collections.abc import Hashable

UNSHARED = math.inf  # all places may go to one owner


class QueueFull(Exception):
    """The maximum of waiters is reached."""


class FairSemaphore:
    """One event loop. `of_free`: an owner gets another place while it holds less than this many times the free ones."""

    __slots__ = ("_free", "_held", "_lines", "_most_of_one", "_of_free", "_waiting", "_waiting_at_most")

    def __init__(self, places: int, *, of_free: float, waiting: int, most_of_one: int | None = None) -> None:
        self._free = places
        self._of_free = of_free
        self._most_of_one = places if most_of_one is None else most_of_one
        self._waiting_at_most = waiting
        self._waiting = 0
        self._held: dict[Hashable, int] = {}
        self._lines: OrderedDict[Hashable, deque[asyncio.Future[None]]] = OrderedDict()  # none is empty

    @property
    def is_unused(self) -> bool:
        return not self._held and not self._lines

    def take(self, owner: Hashable) -> bool:
        if self._lines and owner in self._lines:
            return False
        held, free = self._held.get(owner, 0), self._free
        if free <= 0 or held >= self._most_of_one or held >= self._of_free * free:  # `_may_have`, inlined for speed
            return False
        self._held[owner] = held + 1
        self._free = free - 1
        return True

    async def wait(self, owner: Hashable, deadline: float | None = None) -> None:
        """Wait for a place; `deadline` is in loop time. Raises: QueueFull; TimeoutError."""
        if self._waiting >= self._waiting_at_most:
            raise QueueFull
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._lines.setdefault(owner, deque()).append(waiter)
        self._waiting += 1
        try:
            async with asyncio.timeout_at(deadline):
                await waiter
        except BaseException:
            if waiter.done() and not waiter.cancelled():  # handed over at the moment the caller gave up
                self.give_back(owner)
            else:
                self._leave(owner, waiter)
            raise

    def give_back(self, owner: Hashable) -> None:
        held = self._held[owner] - 1
        if held:
            self._held[owner] = held
        else:
            del self._held[owner]
        self._free += 1
        if self._lines:
            while self._serve_one():
                pass

    def _may_have(self, held: int) -> bool:
        return self._free > 0 and held < self._most_of_one and held < self._of_free * self._free

    def _serve_one(self) -> bool:
        """Give a place to the first line whose owner may have one; False if there is none."""
        found = next((each for each in self._lines.items() if self._may_have(self._held.get(each[0], 0))), None)
        if found is None:
            return False
        owner, line = found
        waiter = line.popleft()
        self._waiting -= 1
        if line:
            self._lines.move_to_end(owner)
        else:
            del self._lines[owner]
        if not waiter.done():  # one that was cancelled has not left the line yet
            self._held[owner] = self._held.get(owner, 0) + 1
            self._free -= 1
            waiter.set_result(None)
        return True

    def _leave(self, owner: Hashable, waiter: asyncio.Future[None]) -> None:
        line = self._lines.get(owner)
        if line is None or waiter not in line:
            return  # `_serve_one` has removed it
        line.remove(waiter)
        self._waiting -= 1
        if not line:
            del self._lines[owner]
