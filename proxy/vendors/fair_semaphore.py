"""A semaphore shared fairly among owners: round-robin waiting lines, and a dynamic threshold.

An owner may hold `free_ratio` times the free places, so several get fewer each and a few stay free for a newcomer.
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
    """One event loop. `free_ratio`: an owner gets another place while it holds less than this many times the free
    ones."""

    __slots__ = ("_free", "_free_ratio", "_held", "_max_per_owner", "_max_queued", "_queued", "_queues")

    def __init__(self, permits: int, *, free_ratio: float, max_queued: int, max_per_owner: int | None = None) -> None:
        self._free = permits
        self._free_ratio = free_ratio
        self._max_per_owner = permits if max_per_owner is None else max_per_owner
        self._max_queued = max_queued
        self._queued = 0
        self._held: dict[Hashable, int] = {}
        self._queues: OrderedDict[Hashable, deque[asyncio.Future[None]]] = OrderedDict()  # none is empty

    @property
    def is_unused(self) -> bool:
        return not self._held and not self._queues

    def try_acquire(self, owner: Hashable) -> bool:
        if self._queues and owner in self._queues:
            return False
        held = self._held.get(owner, 0)
        if not self._may_acquire(held):
            return False
        self._held[owner] = held + 1
        self._free -= 1
        return True

    async def acquire(self, owner: Hashable, deadline: float | None = None) -> None:
        """Wait for a place; `deadline` is in loop time. Raises: QueueFull; TimeoutError."""
        if self._queued >= self._max_queued:
            raise QueueFull
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queues.setdefault(owner, deque()).append(waiter)
        self._queued += 1
        try:
            async with asyncio.timeout_at(deadline):
                await waiter
        except BaseException:
            if waiter.done() and not waiter.cancelled():  # handed over at the moment the caller gave up
                self.release(owner)
            else:
                self._dequeue(owner, waiter)
            raise

    def release(self, owner: Hashable) -> None:
        held = self._held[owner] - 1
        if held:
            self._held[owner] = held
        else:
            del self._held[owner]
        self._free += 1
        if self._queues:
            while self._serve_one():
                pass

    def _may_acquire(self, held: int) -> bool:
        return self._free > 0 and held < self._max_per_owner and held < self._free_ratio * self._free

    def _serve_one(self) -> bool:
        """Give a place to the first line whose owner may have one; False if there is none."""
        found = next((each for each in self._queues.items() if self._may_acquire(self._held.get(each[0], 0))), None)
        if found is None:
            return False
        owner, queue = found
        waiter = queue.popleft()
        self._queued -= 1
        if queue:
            self._queues.move_to_end(owner)
        else:
            del self._queues[owner]
        if not waiter.done():  # one that was cancelled has not left the line yet
            self._held[owner] = self._held.get(owner, 0) + 1
            self._free -= 1
            waiter.set_result(None)
        return True

    def _dequeue(self, owner: Hashable, waiter: asyncio.Future[None]) -> None:
        queue = self._queues.get(owner)
        if queue is None or waiter not in queue:
            return  # `_serve_one` has removed it
        queue.remove(waiter)
        self._queued -= 1
        if not queue:
            del self._queues[owner]
