"""Bulkhead: bounds concurrent calls per organization and vendor; further calls wait in line. docs/decisions/0008"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING
from uuid import UUID

from proxy.vendors import errors

if TYPE_CHECKING:
    from proxy.vendors.pool import PoolKey

MAX_COMPARTMENTS = 4_096  # compartments; past it, the unused ones are dropped


class Compartment:
    """Concurrent calls of one organization at one vendor. Waiting calls get places in the order of their arrival."""

    __slots__ = ("_busy", "_limits", "_queue")

    def __init__(self, limits: Bulkhead) -> None:
        self._limits = limits
        self._busy = 0
        self._queue: deque[asyncio.Future[None]] = deque()

    @property
    def is_unused(self) -> bool:
        return self._busy == 0 and not self._queue

    def try_acquire(self) -> bool:
        if self._busy >= self._limits.calls:
            return False
        self._busy += 1
        return True

    async def acquire(self, deadline: float) -> None:
        """Raises: VendorProblem when the line is full, after `wait_s`, or at `deadline` (loop time)."""
        if len(self._queue) >= self._limits.max_queued:
            raise errors.bulkhead_full()
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        self._queue.append(waiter)
        try:
            async with asyncio.timeout_at(min(deadline, loop.time() + self._limits.wait_s)):
                await waiter
        except BaseException as fault:
            if waiter.done() and not waiter.cancelled():  # handed over at the moment we gave up
                self.release()
            else:
                self._queue.remove(waiter)
            if isinstance(fault, TimeoutError):
                raise errors.bulkhead_full() from fault
            raise

    def release(self) -> None:
        for position, waiter in enumerate(self._queue):
            if not waiter.done():  # one that was cancelled takes itself out of the line
                del self._queue[position]
                waiter.set_result(None)  # the place passes to this call: `_busy` stays
                return
        self._busy -= 1


class Bulkhead:
    """The compartments of one event loop: `calls` in flight in each, `max_queued` in line for at most `wait_s`
    seconds."""

    def __init__(self, *, calls: int, max_queued: int, wait_s: float) -> None:
        self.calls, self.max_queued, self.wait_s = calls, max_queued, wait_s
        self._compartments: dict[tuple[UUID, str], Compartment] = {}

    def compartment(self, key: PoolKey) -> Compartment:
        """Use the result at once: an unused compartment may be dropped."""
        own = (key.org_id, key.vendor)
        found = self._compartments.get(own)
        if found is None:
            if len(self._compartments) >= MAX_COMPARTMENTS:
                self._compartments = {one: each for one, each in self._compartments.items() if not each.is_unused}
            found = self._compartments[own] = Compartment(self)
        return found
