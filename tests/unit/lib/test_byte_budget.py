"""The room of owners, the turn of a body that is stuck, the waits, and the return of every byte."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.lib import byte_budget
from gateway.lib.byte_budget import STEP_BYTES, BudgetExhausted, ByteBudget, Reservation

MIB = 1024 * 1024
LARGEST = 4 * MIB


def budget(*, total: int = 48 * MIB, reserve: int = 16 * MIB, largest: int = LARGEST, wait_s: float = 60) -> ByteBudget:
    return ByteBudget(total=total, reserve=reserve, largest=largest, wait_s=wait_s)


def small(wait_s: float = 60) -> ByteBudget:
    """60 bytes to share, of which one owner alone gets 22, and 40 in reserve."""
    return budget(total=100, reserve=40, largest=40, wait_s=wait_s)


def acquired(tried: ByteBudget, owner: str, wanted: int) -> Reservation:
    """A body that took room while it came until it was whole, or there was no more."""
    reservation = tried.new_reservation(owner)
    while reservation.bytes < wanted and reservation.try_grow(min(reservation.bytes + 1, wanted), wanted):
        pass
    return reservation


async def begin(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    task = asyncio.ensure_future(work)
    await asyncio.sleep(0)
    return task


def is_empty(tried: ByteBudget) -> bool:
    return tried.held == 0 and not (tried._by_owner or tried._lent_to or tried._queues or tried._borrower)


def test_bytes_are_acquired_a_step_ahead_of_what_came() -> None:
    tried = budget()
    reservation = tried.new_reservation("a")
    assert reservation.try_grow(100_000, LARGEST)
    assert reservation.bytes == 100_000 + STEP_BYTES
    assert reservation.try_grow(120_000, LARGEST), "there is room for it"
    assert reservation.bytes == 100_000 + STEP_BYTES
    assert reservation.try_grow(200_000, 210_000)
    assert tried.held == reservation.bytes == 210_000
    reservation.settle(205_000)
    assert tried.held_by("a") == 205_000
    for _ in range(2):
        reservation.release()
    assert is_empty(tried)


@pytest.mark.parametrize(("owners", "left_at_least"), [(1, 19 * MIB), (2, 15 * MIB), (4, 12 * MIB), (30, 4 * MIB)])
def test_owners_that_want_all_leave_bytes_for_others(owners: int, left_at_least: int) -> None:
    tried = budget()
    bodies = [[tried.new_reservation(str(owner)) for _ in range(5)] for owner in range(owners)]
    growing = [body for of_one in bodies for body in of_one]
    while growing:
        growing = [body for body in growing if body.bytes < LARGEST and body.try_grow(body.bytes + 1, LARGEST)]
    held = [tried.held_by(str(owner)) for owner in range(owners)]
    assert 32 * MIB - sum(held) >= left_at_least
    assert max(held) - min(held) <= 6 * STEP_BYTES
    newcomer = acquired(tried, "newcomer", 400_000)
    assert newcomer.bytes == 400_000


async def test_who_gets_no_bytes_keeps_nothing() -> None:
    tried = small(wait_s=0.01)
    tried.new_reservation("a").settle(90)
    stuck = tried.new_reservation("a")
    with pytest.raises(BudgetExhausted):
        await stuck.grow(30, 30)
    assert (stuck.bytes, tried.held, tried._queues) == (0, 90, {})
    stuck.settle(7)
    with pytest.raises(BudgetExhausted):
        await stuck.grow(20, 20)
    assert (stuck.bytes, tried.held) == (0, 90)
    other = tried.new_reservation("b")
    await other.grow(20, 20)
    assert tried.held_by("b") == 20


async def test_what_is_in_memory_takes_nothing_from_the_bytes_of_others() -> None:
    tried = small()
    over = tried.new_reservation("a")
    over.settle(1_000)
    assert tried.held == 1_000
    assert acquired(tried, "b", 20).bytes == 20
    over.settle(10)
    assert tried.held_by("a") == 10


async def test_the_owner_that_holds_least_is_served_first() -> None:
    tried = small()
    kept = {owner: acquired(tried, owner, count) for owner, count in (("a", 20), ("b", 7), ("c", 4), ("d", 5))}
    reserved = tried.new_reservation("e")
    reserved.settle(40)
    order: list[str] = []

    async def take(owner: str) -> None:
        await tried.new_reservation(owner).grow(5, 5)
        order.append(owner)

    tasks = [await begin(take(owner)) for owner in ("b", "d", "c")]
    assert order == []
    kept["a"].release()
    await asyncio.gather(*tasks)
    assert order == ["c", "d", "b"]


async def test_the_oldest_body_of_an_owner_is_served_first() -> None:
    """Also when it comes last in line: one that is nearly whole does not share what is free with ten that begin."""
    tried = small()
    reserved, other, oldest, younger = (tried.new_reservation(owner) for owner in ("r", "b", "a", "a"))
    reserved.settle(41)
    assert other.try_grow(18, 18)
    assert oldest.try_grow(12, 12)
    waits = await begin(younger.grow(5, 5))
    grows = await begin(oldest.grow(17, 17))
    assert not tried.new_reservation("a").try_grow(1, 1), "others of its owner wait"
    other.shrink_to(11)
    await grows
    assert not waits.done()
    other.release()
    await waits


async def test_more_than_all_is_never_given() -> None:
    tried = budget(total=180, reserve=120, largest=40)
    assert acquired(tried, "a", 20).bytes == 20
    assert acquired(tried, "b", 8).bytes == 8
    assert not tried.new_reservation("c").try_grow(120, 120)


async def test_bodies_that_wait_for_each_other_are_read_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(byte_budget, "BORROW_S", 1_000)
    tried = small(wait_s=1)
    bodies = [tried.new_reservation(owner) for owner in "abcd"]
    for body in bodies:
        assert body.try_grow(7, 7)
    waiting = [await begin(body.grow(40, 40)) for body in bodies]
    for number, (body, wait) in enumerate(zip(bodies, waiting, strict=True)):
        await wait
        if number % 2:  # else its sender leaves
            body.settle(40)
        body.release()
    assert is_empty(tried)


async def test_the_reserve_goes_to_the_owner_that_holds_least() -> None:
    tried = small()
    most, least = acquired(tried, "a", 20), acquired(tried, "b", 7)
    first = await begin(most.grow(40, 40))
    second = await begin(least.grow(40, 40))
    await first
    third = await begin(tried.new_reservation("c").grow(40, 40))
    most.release()
    await third
    assert not second.done()
    second.cancel()


async def test_a_body_that_lost_the_reserve_gets_it_before_those_that_need_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The rest of the reserve is enough for that body alone: it is read, and then there is enough for all."""
    monkeypatch.setattr(byte_budget, "BORROW_S", 1_000)
    tried = small(wait_s=1)
    slow, other = acquired(tried, "a", 20), acquired(tried, "b", 7)
    await slow.grow(30, 30)
    tried.end_borrowing(slow)
    waits = await begin(other.grow(40, 40))
    await slow.grow(40, 40)
    assert not waits.done()
    slow.release()
    await waits


async def test_a_sender_that_dawdles_loses_the_reserve(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(byte_budget, "BORROW_S", 0.01)
    tried = budget(total=160, reserve=100, largest=40)
    dawdling, stuck, last = (tried.new_reservation(owner) for owner in "abc")
    for body in (dawdling, stuck, last):
        assert body.try_grow(8, 8)
    await asyncio.gather(*(body.grow(30, 30) for body in (dawdling, stuck)))
    assert tried.held == 68
    stuck.release()
    await last.grow(20, 20)
    assert dawdling.bytes == 30


async def test_one_owner_does_not_use_up_the_reserve() -> None:
    tried = budget(total=180, reserve=120, largest=40, wait_s=0.05)
    tried.new_reservation("a").settle(20)
    tried.new_reservation("b").settle(8)
    slow = tried.new_reservation("a")
    await slow.grow(40, 40)
    slow.settle(40)  # and its client takes nothing of it
    with pytest.raises(BudgetExhausted):
        await tried.new_reservation("a").grow(40, 40)
    await tried.new_reservation("b").grow(40, 40)
    assert tried.held == 108


@pytest.mark.parametrize("borrow_s", [0, 1_000], ids=["short turns", "long turns"])
async def test_many_bodies_of_many_owners_are_all_read(borrow_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """However they come, and however little there is: nothing has to be refused while no sender dawdles."""
    monkeypatch.setattr(byte_budget, "BORROW_S", borrow_s)
    for seed in range(10):
        rolls = random.Random(seed)
        tried = budget(total=40 * MIB, reserve=10 * MIB, largest=10 * MIB, wait_s=300)
        owners = [str(number) for number in range(rolls.choice([1, 3, 30, 100]))]

        async def read(tried: ByteBudget, rolls: random.Random, owner: str) -> None:
            reservation, size, whole = tried.new_reservation(owner), 0, rolls.choice([100_000, MIB, 10 * MIB])
            try:
                while size < whole:
                    size = min(size + rolls.randrange(1, 256 * 1024), whole)
                    await reservation.grow(size, whole)
                    await asyncio.sleep(0)
                reservation.settle(whole)
            finally:
                reservation.release()

        bodies = [read(tried, rolls, rolls.choice(owners)) for _ in range(100)]
        await asyncio.gather(*bodies)
        assert is_empty(tried)


async def test_small_ones_find_bytes_while_others_trickle() -> None:
    """Many owners have sent nearly all of large bodies and say nothing more; others come and go beside them."""
    for trickling in (1, 4, 12, 20):
        tried = budget(total=128 * MIB, reserve=32 * MIB, largest=10 * MIB)
        stuck = []
        for number in range(trickling * 3):
            reservation = acquired(tried, f"trickling {number % trickling}", 10 * MIB - 1)
            if reservation.bytes < 10 * MIB - 1:
                stuck.append(await begin(reservation.grow(reservation.bytes + 1, 10 * MIB)))
        for number in range(50):
            normal = acquired(tried, f"normal {number % 5}", 200_000)
            assert normal.bytes == 200_000
            normal.release()
        for each in stuck:
            each.cancel()
        await asyncio.gather(*stuck, return_exceptions=True)


class Sums:
    """The books of a budget, added up again from its holds."""

    def __init__(self) -> None:
        self.tried = budget()
        self.reservations: list[Reservation] = []

    def check(self) -> None:
        tried = self.tried
        lent = sum(reservation.lent_bytes for reservation in self.reservations)
        assert tried.held == sum(reservation.bytes for reservation in self.reservations)
        assert tried._lent == lent == sum(tried._lent_to.values())
        assert tried._free > 0
        assert all(0 <= reservation.lent_bytes <= reservation.bytes for reservation in self.reservations)
        for owner in {reservation.owner for reservation in self.reservations}:
            assert tried.held_by(owner) == sum(
                reservation.bytes for reservation in self.reservations if reservation.owner == owner
            )


@given(st.lists(st.tuples(st.integers(0, 19), st.sampled_from(["grow", "settle", "shrink"]), st.integers(0, LARGEST))))
def test_the_books_are_right_whatever_is_taken_and_given_back(steps: list[tuple[int, str, int]]) -> None:
    sums = Sums()
    sums.reservations = [sums.tried.new_reservation(str(number % 6)) for number in range(20)]
    for number, what, count in steps:
        reservation = sums.reservations[number]
        if what == "grow":
            held, free = sums.tried.held_by(reservation.owner), sums.tried._free
            before = reservation.bytes
            if reservation.try_grow(count, LARGEST) and reservation.bytes > before:
                more = reservation.bytes - before
                assert (held + more) / (free - more) <= (free - more) / (32 * MIB)
            else:
                assert reservation.bytes == before
        elif what == "settle":
            reservation.settle(count)
            assert reservation.bytes == count
        else:
            reservation.shrink_to(count)
            assert reservation.bytes <= count
        sums.check()
    for reservation in sums.reservations:
        reservation.release()
    assert is_empty(sums.tried)


async def test_nothing_is_lost_whoever_comes_waits_and_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(byte_budget, "BORROW_S", 0.001)
    monkeypatch.setattr(byte_budget, "MAX_WAITING", 60)
    rolls = random.Random(7)
    sums = Sums()

    async def read(owner: str) -> None:
        reservation = sums.tried.new_reservation(owner)
        sums.reservations.append(reservation)
        try:
            for part in range(rolls.randrange(1, 12)):
                await reservation.grow((part + 1) * 300_000, LARGEST)
                sums.check()
                await asyncio.sleep(0)
            reservation.settle(reservation.bytes)
        finally:
            reservation.release()

    bodies = [asyncio.ensure_future(read(str(rolls.randrange(8)))) for _ in range(400)]
    for each in rolls.sample(bodies, 80):
        await asyncio.sleep(0)
        each.cancel()
    ends = await asyncio.gather(*bodies, return_exceptions=True)
    assert {type(end) for end in ends} == {type(None), asyncio.CancelledError, BudgetExhausted}
    assert is_empty(sums.tried)


@pytest.mark.parametrize("how", ["cancelled", "too late", "granted and cancelled at once"])
async def test_what_a_waiter_that_leaves_was_given_comes_back(how: str) -> None:
    tried = small(wait_s=0.01 if how == "too late" else 60)
    kept, leaving = tried.new_reservation("a"), tried.new_reservation("a")
    kept.settle(90)
    waiter = await begin(leaving.grow(10, 10))
    if how == "granted and cancelled at once":
        kept.release()
        waiter.cancel()
    elif how == "cancelled":
        waiter.cancel()
    await asyncio.wait([waiter])
    assert waiter.cancelled() or isinstance(waiter.exception(), BudgetExhausted)
    leaving.release()
    kept.release()
    assert is_empty(tried)


async def test_an_owner_with_a_long_queue_keeps_nobody_from_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(byte_budget, "MAX_WAITING", 3)
    tried = small()
    kept = tried.new_reservation("a")
    kept.settle(90)
    other = acquired(tried, "b", 20)
    waiting = [await begin(tried.new_reservation("a").grow(10, 10)) for _ in range(3)]
    with pytest.raises(BudgetExhausted):
        await tried.new_reservation("a").grow(1, 1)
    of_b = await begin(tried.new_reservation("b").grow(5, 5))
    with pytest.raises(BudgetExhausted):
        await waiting[2]
    assert [each.done() for each in (*waiting[:2], of_b)] == [False] * 3
    kept.release()
    other.release()
    await asyncio.gather(*waiting[:2], of_b)
    assert tried.held == 25
