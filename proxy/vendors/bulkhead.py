"""Bulkhead: bounds concurrent calls per organization and vendor; further calls wait in line. docs/decisions/0008"""

from __future__ import annotations

import asyncio
from uuid import UUID

from gateway.lib.waiting_line import Slots
from proxy.vendors import errors
from proxy.vendors.destination import PoolKey

MAX_COMPARTMENTS = 4_096  # compartments; past it, the unused ones are dropped


class Compartment(Slots):
    """Concurrent calls of one organization at one vendor."""

    __slots__ = ("_limits",)

    def __init__(self, limits: Bulkhead) -> None:
        super().__init__(limits.calls, max_waiting=limits.max_queued)
        self._limits = limits

    @property
    def is_unused(self) -> bool:
        return self._free == self._limits.calls

    async def acquire(self, deadline: float) -> None:
        """Raises: VendorProblem when the line is full, after `wait_s`, or at `deadline` (loop time)."""
        try:
            longest = asyncio.get_running_loop().time() + self._limits.wait_s
            await super().acquire(min(deadline, longest))
        except TimeoutError as fault:
            raise errors.bulkhead_full() from fault


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
