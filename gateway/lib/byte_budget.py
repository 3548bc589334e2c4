"""A budget in bytes for what one event loop keeps of large bodies, with a share for each owner.

An owner is an organization, or the address of a sender who is not known yet. Requests for bytes that do not fit wait:
the owner that holds least is served first, so that one with many large bodies does not keep others from theirs.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Hashable

FREE_BYTES = 64 * 1024  # of each body: small ones are bounded by the number of connections and cost no bookkeeping
MAX_WAITING = 1_000


class BudgetExhausted(Exception):
    """The bytes did not become free in time."""


class ByteBudget:
    """`total` bytes in all, `share` at most for one owner. Belongs to one event loop."""

    def __init__(self, *, total: int, share: int, wait_s: float) -> None:
        self._total, self._share, self._wait_s = total, share, wait_s
        self._held = 0
        self._by_owner: dict[Hashable, int] = {}  # none is 0
        self._waiting: dict[Hashable, deque[tuple[int, asyncio.Future[None]]]] = {}  # none is empty

    @property
    def held(self) -> int:
        """Bytes that are taken now."""
        return self._held

    def held_by(self, owner: Hashable) -> int:
        """Bytes that the owner has taken."""
        return self._by_owner.get(owner, 0)

    def hold(self, owner: Hashable) -> Hold:
        """An empty hold of the owner."""
        return Hold(self, owner)

    async def take(self, owner: Hashable, count: int) -> None:
        """Take the bytes, if need be after a wait of `wait_s` at most.

        Raises: BudgetExhausted.
        """
        if not self._waiting and self._fits(owner, count):
            self.take_anyway(owner, count)
            return
        if count > self._share:
            raise BudgetExhausted
        if sum(map(len, self._waiting.values())) >= MAX_WAITING:
            self._shorten_longest(owner)
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (count, waiter)
        self._waiting.setdefault(owner, deque()).append(entry)
        self._serve()
        try:
            async with asyncio.timeout(self._wait_s):
                await waiter
        except BaseException as fault:
            if _is_granted(waiter):  # at the moment the wait ended
                self.give_back(owner, count)
            else:
                self._forget(owner, entry)
                self._serve()
            if isinstance(fault, TimeoutError):
                raise BudgetExhausted from None
            raise

    def take_anyway(self, owner: Hashable, count: int) -> None:
        """Count bytes that are in memory already, also past the total and the share: others wait for longer."""
        self._held += count
        self._by_owner[owner] = self._by_owner.get(owner, 0) + count

    def give_back(self, owner: Hashable, count: int) -> None:
        """The bytes are free again."""
        self._held -= count
        left = self._by_owner[owner] - count
        if left:
            self._by_owner[owner] = left
        else:
            del self._by_owner[owner]
        if self._waiting:
            self._serve()

    def _fits(self, owner: Hashable, count: int) -> bool:
        return self._held + count <= self._total and self.held_by(owner) + count <= self._share

    def _serve(self) -> None:
        while (waiter := self._next()) is not None:
            waiter.set_result(None)

    def _next(self) -> asyncio.Future[None] | None:
        """Take bytes for the first in line: an owner at its share is passed over, a full total lets all owners wait."""
        for owner in sorted(self._waiting, key=self.held_by):
            line = self._waiting[owner]
            count, waiter = line[0]
            if waiter.done():  # it has left, and takes itself out of the line in a moment
                continue
            if self.held_by(owner) + count > self._share:
                continue
            if self._held + count > self._total:
                return None
            line.popleft()
            if not line:
                del self._waiting[owner]
            self.take_anyway(owner, count)
            return waiter
        return None

    def _shorten_longest(self, owner: Hashable) -> None:
        """The last of the longest line gives up its place: an owner with many waiting keeps no other from waiting.

        Raises: BudgetExhausted if that is the line of `owner`.
        """
        longest = max(self._waiting, key=lambda each: len(self._waiting[each]))
        line = self._waiting[longest]
        if len(line) <= len(self._waiting.get(owner, ())):
            raise BudgetExhausted
        _, waiter = line.pop()
        if not line:
            del self._waiting[longest]
        if not waiter.done():
            waiter.set_exception(BudgetExhausted())

    def _forget(self, owner: Hashable, entry: tuple[int, asyncio.Future[None]]) -> None:
        line = self._waiting.get(owner)
        if line is not None and entry in line:
            line.remove(entry)
            if not line:
                del self._waiting[owner]


def _is_granted(waiter: asyncio.Future[None]) -> bool:
    return waiter.done() and not waiter.cancelled() and waiter.exception() is None


class Hold:
    """The bytes that one request or answer keeps. `release` gives all of them back, however often it is called."""

    __slots__ = ("_budget", "_bytes", "_owner")

    def __init__(self, budget: ByteBudget, owner: Hashable) -> None:
        self._budget, self._owner = budget, owner
        self._bytes = 0

    @property
    def bytes(self) -> int:
        """The bytes it keeps now."""
        return self._bytes

    async def grow_to(self, count: int) -> None:
        """Keep `count` bytes, those beyond what it keeps already being taken now.

        Raises: BudgetExhausted; then it keeps what it kept.
        """
        more = count - self._bytes
        if more > 0:
            await self._budget.take(self._owner, more)
            self._bytes += more

    def count(self, count: int) -> None:
        """Keep `count` bytes at least, which are in memory already: there is no waiting for them."""
        more = count - self._bytes
        if more > 0:
            self._budget.take_anyway(self._owner, more)
            self._bytes += more

    def shrink_to(self, count: int) -> None:
        """Keep no more than `count` bytes."""
        less = self._bytes - count
        if less > 0:
            self._bytes -= less
            self._budget.give_back(self._owner, less)

    def release(self) -> None:
        """Give all bytes back."""
        self.shrink_to(0)
