"""Budgets in bytes for the large bodies that one event loop keeps in memory, shared by owners.

An owner is an organization, or a sender's address before authentication. A body takes room in steps while it arrives:
a slow sender holds what it has sent and one step. An owner may hold the same fraction of the free bytes as these are of
the whole budget (a dynamic threshold): one owner alone gets 38 %, several get less each, and a newcomer finds room.

Bodies that hold a part and wait for more could wait for each other. Therefore the budget has a reserve: one body at a
time has the turn and may pass its owner's threshold with bytes of the reserve, so that it completes and frees all.
docs/decisions/0008
"""

from __future__ import annotations

import asyncio
import itertools
from bisect import insort
from collections.abc import Hashable
from typing import NamedTuple

FREE_BYTES = 64 * 1024  # of each body: the limits of connections bound small bodies, which need no bookkeeping
STEP_BYTES = 64 * 1024  # of room ahead of what has arrived
MAX_WAITING = 1_000
TURN_S = 1.0  # afterwards another body has the turn: this one may have a slow sender


class BudgetExhausted(Exception):
    """Not enough bytes became free in time."""


class ByteBudget:
    """`total` bytes including the `reserve`, for bodies of `largest` bytes at most. Belongs to one event loop."""

    def __init__(self, *, total: int, reserve: int, largest: int, wait_s: float) -> None:
        self._reserve, self._largest, self._wait_s = reserve, largest, wait_s
        self._shared = self._free = total - reserve
        self._lent = 0  # of the reserve; may exceed it, see take_anyway
        self._by_owner: dict[Hashable, int] = {}  # without zeros, like the next
        self._lent_to: dict[Hashable, int] = {}  # of those, bytes of the reserve
        self._waiting: dict[Hashable, list[_Waiting]] = {}  # no empty lists; the oldest body first
        self._turn: Hold | None = None
        self._turn_ends: asyncio.TimerHandle | None = None
        self._numbers = itertools.count()

    @property
    def held(self) -> int:
        return self._shared - self._free + self._lent

    def held_by(self, owner: Hashable) -> int:
        return self._by_owner.get(owner, 0)

    def hold(self, owner: Hashable) -> Hold:
        """An empty hold for one body."""
        return Hold(self, owner, next(self._numbers))

    def take(self, hold: Hold, count: int) -> bool:
        """False if the hold may not have the bytes now, or other bodies of its owner wait already."""
        return (hold is self._turn or hold.owner not in self._waiting) and self._take(hold, count)

    async def wait(self, hold: Hold, count: int) -> None:
        """`take`, as soon as possible. Raises: BudgetExhausted after `wait_s`, or when too many bodies wait."""
        if sum(map(len, self._waiting.values())) >= MAX_WAITING:
            self._shorten_longest(hold.owner)
        waiting = _Waiting(hold, count, asyncio.get_running_loop().create_future())
        insort(self._waiting.setdefault(hold.owner, []), waiting, key=_age)
        self._serve()
        try:
            async with asyncio.timeout(self._wait_s):
                is_granted = await waiting.is_granted
        except TimeoutError:
            is_granted = False
        finally:
            self._leave(waiting)
        if not is_granted:
            raise BudgetExhausted

    def take_anyway(self, hold: Hold, count: int) -> None:
        """For bytes that are in memory already. Past the threshold they count in the reserve, not in others' room."""
        if not self._take(hold, count):
            self._lend(hold, count)

    def give_back(self, hold: Hold, count: int) -> None:
        """Free the bytes. A turn of the hold ends."""
        lent = min(count, hold.lent_bytes)
        hold.bytes -= count
        hold.lent_bytes -= lent
        self._free += count - lent
        self._lent -= lent
        _add(self._by_owner, hold.owner, -count)
        _add(self._lent_to, hold.owner, -lent)
        self.end_turn(hold)
        if self._waiting:
            self._serve()

    def end_turn(self, hold: Hold) -> None:
        """Let another body have the turn, if this one has it."""
        if hold is self._turn and self._turn_ends is not None:
            self._turn_ends.cancel()
            self._turn = self._turn_ends = None
            self._serve()

    def _take(self, hold: Hold, count: int) -> bool:
        left = max(0, self._free - count)
        if (self.held_by(hold.owner) + count) * self._shared <= left * left:
            self._free = left
            hold.bytes += count
            _add(self._by_owner, hold.owner, count)
        elif hold is self._turn:
            self._lend(hold, count)
        else:
            return False
        return True

    def _lend(self, hold: Hold, count: int) -> None:
        self._lent += count
        hold.bytes += count
        hold.lent_bytes += count
        _add(self._by_owner, hold.owner, count)
        _add(self._lent_to, hold.owner, count)

    def _serve(self) -> None:
        """Grant free bytes to waiting bodies, the owner that holds least first. Then give the turn, if it is free."""
        while any(map(self._grant, sorted((line[0] for line in self._waiting.values()), key=self._order))):
            pass
        if self._waiting and self._turn is None:
            self._give_turn()

    def _give_turn(self) -> None:
        able = [each for line in self._waiting.values() for each in line if self._can_end(each)]
        if able:
            first = min(able, key=self._order)
            self._turn = first.hold
            self._turn_ends = asyncio.get_running_loop().call_later(TURN_S, self.end_turn, first.hold)
            self._grant(first)

    def _can_end(self, waiting: _Waiting) -> bool:
        """Whether the reserve has all the bytes that the body may still need.

        The body of the last turn always passes, however short its turn was (banker's algorithm). An owner whose other
        bodies hold `largest` bytes of the reserve gets no turn, so that one owner cannot use it up.
        """
        hold = waiting.hold
        of_others = self._lent_to.get(hold.owner, 0) - hold.lent_bytes
        return of_others < self._largest and self._lent + self._largest - hold.bytes <= self._reserve

    def _order(self, waiting: _Waiting) -> tuple[int, int]:
        return self.held_by(waiting.hold.owner), waiting.hold.number

    def _grant(self, waiting: _Waiting) -> bool:
        if not waiting.is_granted.done():  # otherwise its task was cancelled
            if not self._take(waiting.hold, waiting.more):
                return False
            waiting.is_granted.set_result(True)
        self._remove(waiting)
        return True

    def _shorten_longest(self, owner: Hashable) -> None:
        """Refuse the youngest body of the longest line, so that one owner cannot use up all places to wait.

        Raises: BudgetExhausted if that is the line of `owner`.
        """
        longest = max(self._waiting, key=lambda each: len(self._waiting[each]))
        if len(self._waiting[longest]) <= len(self._waiting.get(owner, ())):
            raise BudgetExhausted
        last = self._waiting[longest][-1]
        self._remove(last)
        if not last.is_granted.done():
            last.is_granted.set_result(False)

    def _leave(self, waiting: _Waiting) -> None:
        if waiting in self._waiting.get(waiting.hold.owner, ()):
            self._remove(waiting)
            self._serve()

    def _remove(self, waiting: _Waiting) -> None:
        line = self._waiting[waiting.hold.owner]
        line.remove(waiting)
        if not line:
            del self._waiting[waiting.hold.owner]


class Hold:
    """The bytes of one body. `release` may be called more than once."""

    __slots__ = ("_budget", "bytes", "lent_bytes", "number", "owner")

    def __init__(self, budget: ByteBudget, owner: Hashable, number: int) -> None:
        self._budget, self.owner, self.number = budget, owner, number
        self.bytes = self.lent_bytes = 0

    def try_make_room(self, size: int, most: int) -> bool:
        """Room for the `size` bytes that have arrived and one step more, up to `most`; False if there is none now."""
        more = self._missing(size, most)
        return more == 0 or self._budget.take(self, more)

    async def make_room(self, size: int, most: int) -> None:
        """`try_make_room`, after a wait if necessary. Raises: BudgetExhausted; all bytes are given back then."""
        more = self._missing(size, most)
        if more == 0 or self._budget.take(self, more):
            return
        try:
            await self._budget.wait(self, more)
        except BudgetExhausted:
            self.release()
            raise

    def _missing(self, size: int, most: int) -> int:
        return 0 if size <= self.bytes else max(size, min(size + STEP_BYTES, most)) - self.bytes

    async def keep_up(self, size: int, most: int, *, is_whole: bool) -> None:
        """`make_room` while a body arrives, `settle` at its end. Raises: BudgetExhausted, as `make_room`."""
        await self.make_room(size, size if is_whole else most)
        if is_whole:
            self.settle(size)

    def settle(self, count: int) -> None:
        """Keep exactly `count` bytes, which are in memory already, without a wait. A turn of the hold ends."""
        if count > self.bytes:
            self._budget.take_anyway(self, count - self.bytes)
        self._budget.end_turn(self)
        self.shrink_to(count)

    def shrink_to(self, count: int) -> None:
        if count < self.bytes:
            self._budget.give_back(self, self.bytes - count)

    def release(self) -> None:
        self.shrink_to(0)


class _Waiting(NamedTuple):
    """A body that waits for `more` bytes."""

    hold: Hold
    more: int
    is_granted: asyncio.Future[bool]


def _age(waiting: _Waiting) -> int:
    return waiting.hold.number


def _add(counts: dict[Hashable, int], owner: Hashable, count: int) -> None:
    left = counts.get(owner, 0) + count
    if left:
        counts[owner] = left
    else:
        counts.pop(owner, None)
