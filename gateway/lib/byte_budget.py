"""Budgets in bytes for the large bodies that one event loop keeps in memory, shared by owners.

An owner is an organization, or a client's address before authentication. A body reserves bytes in steps while it
arrives, so a slow sender holds the bytes it has sent and one step. The bytes of an owner have a dynamic threshold:
held / free <= free / total, without the reserve. One owner alone gets 38 %, several get less each, and a newcomer
finds bytes.

Bodies that hold a part and wait for more could deadlock. Therefore the budget has a reserve: one body at a time, the
borrower, may pass its owner's threshold with bytes of the reserve. It completes and frees all. docs/decisions/0025
"""

from __future__ import annotations

import asyncio
import itertools
from bisect import insort
from collections.abc import Hashable
from typing import NamedTuple

FREE_BYTES = 64 * 1024  # of each body: the limits of connections bound small bodies, which need no bookkeeping
STEP_BYTES = 64 * 1024  # reserved ahead of the bytes that have arrived
MAX_WAITING = 1_000
BORROW_S = 1.0  # then another body may borrow: the sender of this one may be slow


class BudgetExhausted(Exception):
    """Not enough bytes became free in time."""


class ByteBudget:
    """`total` bytes including the `reserve`, for bodies of `largest` bytes at most. Belongs to one event loop."""

    def __init__(self, *, total: int, reserve: int, largest: int, wait_s: float) -> None:
        self._reserve, self._largest, self._wait_s = reserve, largest, wait_s
        self._shared = self._free = total - reserve
        self._lent = 0  # bytes taken from the reserve; force_acquire may take more than it has
        self._by_owner: dict[Hashable, int] = {}  # all bytes that the owner holds; never 0
        self._lent_to: dict[Hashable, int] = {}  # the part of them from the reserve; never 0
        self._queues: dict[Hashable, list[_Waiter]] = {}  # no empty lists; the oldest body first
        self._borrower: Reservation | None = None
        self._borrow_timer: asyncio.TimerHandle | None = None
        self._numbers = itertools.count()

    @property
    def held(self) -> int:
        return self._shared - self._free + self._lent

    def held_by(self, owner: Hashable) -> int:
        return self._by_owner.get(owner, 0)

    def new_reservation(self, owner: Hashable) -> Reservation:
        """An empty reservation for one body."""
        return Reservation(self, owner, next(self._numbers))

    def try_acquire(self, reservation: Reservation, count: int) -> bool:
        """False if the bytes would pass the threshold, or other bodies of the owner wait already."""
        return (reservation is self._borrower or reservation.owner not in self._queues) and self._try_acquire(
            reservation, count
        )

    async def acquire(self, reservation: Reservation, count: int) -> None:
        """`try_acquire`, as soon as possible. Raises: BudgetExhausted after `wait_s`, or when too many bodies wait."""
        if sum(map(len, self._queues.values())) >= MAX_WAITING:
            self._shorten_longest_queue(reservation.owner)
        waiter = _Waiter(reservation, count, asyncio.get_running_loop().create_future())
        insort(self._queues.setdefault(reservation.owner, []), waiter, key=_age)
        self._serve()
        try:
            async with asyncio.timeout(self._wait_s):
                is_granted = await waiter.is_granted
        except TimeoutError:
            is_granted = False
        finally:
            self._cancel_wait(waiter)
        if not is_granted:
            raise BudgetExhausted

    def force_acquire(self, reservation: Reservation, count: int) -> None:
        """For bytes that are in memory already. Past the threshold they count in the reserve."""
        if not self._try_acquire(reservation, count):
            self._lend(reservation, count)

    def release(self, reservation: Reservation, count: int) -> None:
        """Free the bytes. The reservation no longer borrows."""
        lent = min(count, reservation.lent_bytes)
        reservation.bytes -= count
        reservation.lent_bytes -= lent
        self._free += count - lent
        self._lent -= lent
        _add(self._by_owner, reservation.owner, -count)
        _add(self._lent_to, reservation.owner, -lent)
        self.end_borrowing(reservation)
        if self._queues:
            self._serve()

    def end_borrowing(self, reservation: Reservation) -> None:
        """Let another body borrow, if this one is the borrower."""
        if reservation is self._borrower and self._borrow_timer is not None:
            self._borrow_timer.cancel()
            self._borrower = self._borrow_timer = None
            self._serve()

    def _try_acquire(self, reservation: Reservation, count: int) -> bool:
        left = max(0, self._free - count)
        if (self.held_by(reservation.owner) + count) * self._shared <= left * left:
            self._free = left
            reservation.bytes += count
            _add(self._by_owner, reservation.owner, count)
        elif reservation is self._borrower:
            self._lend(reservation, count)
        else:
            return False
        return True

    def _lend(self, reservation: Reservation, count: int) -> None:
        self._lent += count
        reservation.bytes += count
        reservation.lent_bytes += count
        _add(self._by_owner, reservation.owner, count)
        _add(self._lent_to, reservation.owner, count)

    def _serve(self) -> None:
        """Grant free bytes to waiting bodies, the owner that holds least first. Then choose a borrower."""
        while any(map(self._grant, sorted((queue[0] for queue in self._queues.values()), key=self._order))):
            pass
        if self._queues and self._borrower is None:
            self._choose_borrower()

    def _choose_borrower(self) -> None:
        able = [each for queue in self._queues.values() for each in queue if self._can_end(each)]
        if able:
            first = min(able, key=self._order)
            self._borrower = first.reservation
            self._borrow_timer = asyncio.get_running_loop().call_later(BORROW_S, self.end_borrowing, first.reservation)
            self._grant(first)

    def _can_end(self, waiter: _Waiter) -> bool:
        """Whether the reserve has all the bytes that the body may still need.

        This always holds for the body that borrowed last, so one body can always finish (banker's algorithm). An owner
        whose other bodies hold `largest` bytes of the reserve does not borrow, so that one owner cannot use it up.
        """
        reservation = waiter.reservation
        of_others = self._lent_to.get(reservation.owner, 0) - reservation.lent_bytes
        return of_others < self._largest and self._lent + self._largest - reservation.bytes <= self._reserve

    def _order(self, waiter: _Waiter) -> tuple[int, int]:
        return self.held_by(waiter.reservation.owner), waiter.reservation.number

    def _grant(self, waiter: _Waiter) -> bool:
        if not waiter.is_granted.done():  # otherwise its task was cancelled
            if not self._try_acquire(waiter.reservation, waiter.more):
                return False
            waiter.is_granted.set_result(True)
        self._remove(waiter)
        return True

    def _shorten_longest_queue(self, owner: Hashable) -> None:
        """Refuse the youngest body of the longest line, so that one owner cannot use up all places to wait.

        Raises: BudgetExhausted if that is the line of `owner`.
        """
        longest = max(self._queues, key=lambda each: len(self._queues[each]))
        if len(self._queues[longest]) <= len(self._queues.get(owner, ())):
            raise BudgetExhausted
        last = self._queues[longest][-1]
        self._remove(last)
        if not last.is_granted.done():
            last.is_granted.set_result(False)

    def _cancel_wait(self, waiter: _Waiter) -> None:
        if waiter in self._queues.get(waiter.reservation.owner, ()):
            self._remove(waiter)
            self._serve()

    def _remove(self, waiter: _Waiter) -> None:
        queue = self._queues[waiter.reservation.owner]
        queue.remove(waiter)
        if not queue:
            del self._queues[waiter.reservation.owner]


class Reservation:
    """The bytes of one body. `release` may be called more than once."""

    __slots__ = ("_budget", "bytes", "lent_bytes", "number", "owner")

    def __init__(self, budget: ByteBudget, owner: Hashable, number: int) -> None:
        self._budget, self.owner, self.number = budget, owner, number
        self.bytes = self.lent_bytes = 0

    def try_grow(self, size: int, most: int) -> bool:
        """Reserve the `size` bytes that have arrived and one step more, up to `most`; False if they are not free."""
        more = self._missing(size, most)
        return more == 0 or self._budget.try_acquire(self, more)

    async def grow(self, size: int, most: int) -> None:
        """`try_grow`, after a wait if necessary. Raises: BudgetExhausted; all bytes are given back then."""
        more = self._missing(size, most)
        if more == 0 or self._budget.try_acquire(self, more):
            return
        try:
            await self._budget.acquire(self, more)
        except BudgetExhausted:
            self.release()
            raise

    def _missing(self, size: int, most: int) -> int:
        return 0 if size <= self.bytes else max(size, min(size + STEP_BYTES, most)) - self.bytes

    async def keep_up(self, size: int, most: int, *, is_whole: bool) -> None:
        """`grow` while a body arrives, `settle` at its end. Raises: BudgetExhausted, as `grow`."""
        await self.grow(size, size if is_whole else most)
        if is_whole:
            self.settle(size)

    def settle(self, count: int) -> None:
        """Keep exactly `count` bytes, which are in memory already, without a wait. The borrowing ends."""
        if count > self.bytes:
            self._budget.force_acquire(self, count - self.bytes)
        self._budget.end_borrowing(self)
        self.shrink_to(count)

    def shrink_to(self, count: int) -> None:
        if count < self.bytes:
            self._budget.release(self, self.bytes - count)

    def release(self) -> None:
        self.shrink_to(0)


class _Waiter(NamedTuple):
    """A body that waits for `more` bytes."""

    reservation: Reservation
    more: int
    is_granted: asyncio.Future[bool]


def _age(waiter: _Waiter) -> int:
    return waiter.reservation.number


def _add(counts: dict[Hashable, int], owner: Hashable, count: int) -> None:
    left = counts.get(owner, 0) + count
    if left:
        counts[owner] = left
    else:
        counts.pop(owner, None)
