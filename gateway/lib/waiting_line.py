"""The line of tasks that wait for a slot: round robin over owners, first come first served within one."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Owner = TypeVar("Owner", bound=Hashable)


class WaitingLine(Generic[Owner]):
    """One event loop. Its user counts the slots, and calls `wait` only when none is free for the owner."""

    __slots__ = ("_count", "by_owner")

    def __init__(self) -> None:
        self._count = 0
        # The next owner first. No inner line is empty.
        self.by_owner: OrderedDict[Owner, OrderedDict[asyncio.Future[None], None]] = OrderedDict()

    def __len__(self) -> int:
        return self._count

    async def wait(self, owner: Owner, give_back: Callable[[], None], deadline: float | None) -> None:
        """Returns with a slot that was handed over. Raises: TimeoutError at `deadline` (loop time).

        `give_back` frees a slot that was handed over just as the task was cancelled or timed out.
        """
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.by_owner.setdefault(owner, OrderedDict())[waiter] = None
        self._count += 1
        try:
            async with asyncio.timeout_at(deadline):
                await waiter
        except BaseException:
            if waiter.done() and not waiter.cancelled():
                give_back()
            else:
                self._remove(owner, waiter)
            raise

    def hand_over(self, owner: Owner) -> bool:
        """Hand a slot to the owner's first task; the owner is then last. False if no task of it waits any more."""
        queue = self.by_owner.get(owner)
        if queue is None:
            return False
        is_handed = False
        while queue and not is_handed:
            waiter, _ = queue.popitem(last=False)
            self._count -= 1
            is_handed = not waiter.done()  # a cancelled task has not left the line yet
            if is_handed:
                waiter.set_result(None)
        if queue:
            self.by_owner.move_to_end(owner)
        else:
            del self.by_owner[owner]
        return is_handed

    def hand_over_to_next(self) -> bool:
        """Hand a slot to the first task of the first owner. False if no task waits any more."""
        while self.by_owner:
            if self.hand_over(next(iter(self.by_owner))):
                return True
        return False

    def move_to_end(self, owner: Owner) -> None:
        if owner in self.by_owner:
            self.by_owner.move_to_end(owner)

    def _remove(self, owner: Owner, waiter: asyncio.Future[None]) -> None:
        queue = self.by_owner.get(owner)
        if queue is None or waiter not in queue:
            return  # `hand_over` has passed it
        del queue[waiter]
        self._count -= 1
        if not queue:
            del self.by_owner[owner]


class Slots:
    """The slots of one event loop. Tasks without one wait in the order of their arrival, at most `max_waiting`."""

    __slots__ = ("_free", "_line", "_max_waiting")

    def __init__(self, count: int, *, max_waiting: int) -> None:
        self._free = count
        self._max_waiting = max_waiting
        self._line: WaitingLine[None] = WaitingLine()

    def try_acquire(self) -> bool:
        if not self._free:
            return False
        self._free -= 1
        return True

    async def acquire(self, deadline: float) -> None:
        """Wait for a slot. Raises: TimeoutError at `deadline` (loop time), and at once when the line is full."""
        if len(self._line) >= self._max_waiting:
            raise TimeoutError
        await self._line.wait(None, self.release, deadline)

    def release(self) -> None:
        if not self._line.hand_over_to_next():
            self._free += 1
