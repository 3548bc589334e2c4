"""How many calls of one organization may be under way at one vendor: the rest waits in a line that has an end.

Connections are bounded for each vendor (proxy.vendors.connections), so that a slow vendor holds up no other one. Within
that bound an organization has a share: it cannot take a vendor away from all others.   docs/decisions/0008
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING
from uuid import UUID

from proxy.vendors import errors

if TYPE_CHECKING:
    from proxy.vendors.pool import PoolKey

MOST_KEPT = 4_096


class Compartment:
    """One organization at one vendor. Places go to who waits for longest; nobody who comes later gets in between."""

    __slots__ = ("_busy", "_limits", "_waiting")

    def __init__(self, limits: Bulkhead) -> None:
        self._limits = limits
        self._busy = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def is_unused(self) -> bool:
        """Nothing is under way and nobody waits."""
        return self._busy == 0 and not self._waiting

    def take(self) -> bool:
        """A place, if one is free now."""
        if self._busy >= self._limits.calls:
            return False
        self._busy += 1
        return True

    async def wait(self, deadline: float) -> None:
        """A place, when it is this call's turn.

        Raises: VendorProblem when the line is too long, or at the end of the time to wait, or at `deadline` (in the
        loop's time).
        """
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
        """The call is over: its place goes to the next in line."""
        for position, waiter in enumerate(self._waiting):
            if not waiter.done():  # one that was cancelled takes itself out of the line
                del self._waiting[position]
                waiter.set_result(None)
                return
        self._busy -= 1


class Bulkhead:
    """The compartments of one event loop: `calls` under way in each, `waiting` in line for at most `wait_s`."""

    def __init__(self, *, calls: int, waiting: int, wait_s: float) -> None:
        self.calls, self.waiting, self.wait_s = calls, waiting, wait_s
        self._compartments: dict[tuple[UUID, str], Compartment] = {}

    def compartment(self, key: PoolKey) -> Compartment:
        """Where a call belongs. To be used at once: an empty one is forgotten."""
        own = (key.org_id, key.vendor)
        found = self._compartments.get(own)
        if found is None:
            if len(self._compartments) >= MOST_KEPT:
                self._compartments = {one: each for one, each in self._compartments.items() if not each.is_unused}
            found = self._compartments[own] = Compartment(self)
        return found
