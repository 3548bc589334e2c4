"""Bulkhead: bounds concurrent calls per organization and vendor; further calls wait in line. docs/decisions/0008"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING
from uuid import UUID

from proxy.vendors import errors

if TYPE_CHECKING:
    from proxy.vendors.pool import PoolKey

MOST_KEPT = 4_096  # compartments; past it, the unused ones are dropped


class Compartment:
    """Concurrent calls of one organization at one vendor. Waiting calls get places in the order of their arrival."""

    __slots__ = ("_busy", "_limits", "_waiting")

    def __init__(self, limits: Bulkhead) -> None:
        self._limits = limits
        self._busy = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def is_unused(self) -> bool:
        return self._busy == 0 and not self._waiting

    def take(self) -> bool:
        if self._busy >= self._limits.calls:
            return False
        self._busy += 1
        return True

    async def wait(self, deadline: float) -> None:
        """Raises: VendorProblem when the line is full, after `wait_s`, or at `deadline` (loop time)."""
        if len(self._waiting) >= self._limits.waiting:
            raise errors.crowded()
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        self._waiting.append(waiter)
        try:
            async with asyncio.timeout_at(min(deadline, loop.time() + self._limits.wait_s)):
                await waiter
        except BaseException as fault:
            if waiter.done() and not waiter.cancelled():  # handed over at the moment we gave up
                self.give_back()
            else:
                self._waiting.remove(waiter)
            if isinstance(fault, TimeoutError):
                raise errors.crowded() from fault
            raise

    def give_back(self) -> None:
        for position, waiter in enumerate(self._waiting):
            if not waiter.done():  # one that was cancelled takes itself out of the line
                del self._waiting[position]
                waiter.set_result(None)  # the place passes to this call: `_busy` stays
                return
        self._busy -= 1


class Bulkhead:
    """The compartments of one event loop: `calls` in flight in each, `waiting` in line for at most `wait_s` seconds."""

    def __init__(self, *, calls: int, waiting: int, wait_s: float) -> None:
        self.calls, self.waiting, self.wait_s = calls, waiting, wait_s
        self._compartments: dict[tuple[UUID, str], Compartment] = {}

    def compartment(self, key: PoolKey) -> Compartment:
        """Use the result at once: an unused compartment may be dropped."""
        own = (key.org_id, key.vendor)
        found = self._compartments.get(own)
        if found is None:
            if len(self._compartments) >= MOST_KEPT:
                self._compartments = {one: each for one, each in self._compartments.items() if not each.is_unused}
            found = self._compartments[own] = Compartment(self)
        return found
