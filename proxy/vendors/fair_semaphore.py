"""A semaphore shared fairly among owners: round-robin waiting lines, and a dynamic threshold.

An owner gets a place while it holds fewer than `free_ratio` times the free places. So one owner cannot take all, and a
newcomer finds one.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from functools import partial

from gateway.lib.waiting_line import WaitingLine

UNSHARED = math.inf  # all places may go to one owner


class QueueFull(Exception):
    """The maximum of waiters is reached."""


class FairSemaphore:
    """One event loop. `free_ratio`: an owner gets another place while it holds less than this many times the free
    ones."""

    __slots__ = ("_free", "_free_ratio", "_held", "_line", "_max_per_owner", "_max_queued")

    def __init__(self, permits: int, *, free_ratio: float, max_queued: int, max_per_owner: int | None = None) -> None:
        self._free = permits
        self._free_ratio = free_ratio
        self._max_per_owner = permits if max_per_owner is None else max_per_owner
        self._max_queued = max_queued
        self._held: dict[Hashable, int] = {}
        self._line: WaitingLine[Hashable] = WaitingLine()

    @property
    def is_unused(self) -> bool:
        return not self._held and not self._line

    def try_acquire(self, owner: Hashable) -> bool:
        if self._line.by_owner and owner in self._line.by_owner:
            return False
        held = self._held.get(owner, 0)
        if not self._may_acquire(held):
            return False
        self._held[owner] = held + 1
        self._free -= 1
        return True

    async def acquire(self, owner: Hashable, deadline: float | None = None) -> None:
        """Wait for a place; `deadline` is in loop time. Raises: QueueFull; TimeoutError."""
        if len(self._line) >= self._max_queued:
            raise QueueFull
        await self._line.wait(owner, partial(self.release, owner), deadline)

    def release(self, owner: Hashable) -> None:
        held = self._held[owner] - 1
        if held:
            self._held[owner] = held
        else:
            del self._held[owner]
        self._free += 1
        while self._line.by_owner and self._serve_one():
            pass

    def _may_acquire(self, held: int) -> bool:
        return self._free > 0 and held < self._max_per_owner and held < self._free_ratio * self._free

    def _serve_one(self) -> bool:
        """Give a place to the first line whose owner may have one; False if there is none."""
        for owner in self._line.by_owner:
            held = self._held.get(owner, 0)
            if self._may_acquire(held):
                if self._line.hand_over(owner):
                    self._held[owner] = held + 1
                    self._free -= 1
                return True
        return False
