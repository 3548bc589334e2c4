"""Places shared out among owners: none can take them all, lines are served in turn, and nothing is lost."""

from __future__ import annotations

import asyncio
import random

import pytest

from proxy.vendors.fair_semaphore import UNSHARED, FairSemaphore, QueueFull


def taken(permits: FairSemaphore, owner: object, wanted: int) -> int:
    """The number of places, of so many, that an owner gets at once."""
    return sum(permits.try_acquire(owner) for _ in range(wanted))


@pytest.mark.parametrize(("owners", "left_at_least"), [(1, 50), (2, 25), (4, 6), (6, 1)])
def test_few_owners_that_want_all_leave_permits_for_others(owners: int, left_at_least: int) -> None:
    permits = FairSemaphore(100, free_ratio=1, max_queued=10)
    held = [taken(permits, owner, 100) for owner in range(owners)]
    assert 100 - sum(held) >= left_at_least
    assert permits.try_acquire("newcomer")


def test_an_owner_alone_may_have_all_where_nobody_else_can_come() -> None:
    assert taken(FairSemaphore(7, free_ratio=UNSHARED, max_queued=1), "acme", 10) == 7
    assert taken(FairSemaphore(16, free_ratio=1, max_per_owner=4, max_queued=1), "acme", 10) == 4


async def until(permits: FairSemaphore, waiting: int) -> None:
    while len(permits._line) != waiting:
        await asyncio.sleep(0)


async def test_queues_are_served_round_robin() -> None:
    permits = FairSemaphore(1, free_ratio=UNSHARED, max_queued=100)
    assert permits.try_acquire("acme")
    served: list[str] = []

    async def call(owner: str) -> None:
        await permits.acquire(owner)
        served.append(owner)
        permits.release(owner)

    calls = []
    for owner in ["acme"] * 5 + ["globex"] * 2 + ["zeta"]:
        calls.append(asyncio.ensure_future(call(owner)))
        await until(permits, len(calls))
    assert not permits.try_acquire("acme"), "others of it wait"
    permits.release("acme")
    await asyncio.gather(*calls)
    assert served == ["acme", "globex", "zeta", "acme", "globex", "acme", "acme", "acme"]
    assert permits.is_unused


async def test_who_may_have_no_more_lets_others_pass() -> None:
    permits = FairSemaphore(4, free_ratio=1, max_queued=100)
    assert taken(permits, "acme", 9) == 2
    waiting = asyncio.ensure_future(permits.acquire("acme"))
    await until(permits, 1)
    assert permits.try_acquire("globex")
    assert not permits.try_acquire("globex")
    assert permits.try_acquire("zeta")
    permits.release("zeta")
    permits.release("globex")
    assert not waiting.done()
    permits.release("acme")
    await waiting
    assert taken(permits, "zeta", 9) == 1


async def test_a_queue_has_a_bound_and_a_deadline() -> None:
    permits = FairSemaphore(1, free_ratio=UNSHARED, max_queued=1)
    assert permits.try_acquire("acme")
    with pytest.raises(TimeoutError):
        await permits.acquire("globex", asyncio.get_running_loop().time() - 1)
    left = asyncio.ensure_future(permits.acquire("globex"))
    await until(permits, 1)
    with pytest.raises(QueueFull):
        await permits.acquire("zeta")
    left.cancel()
    with pytest.raises(asyncio.CancelledError):
        await left
    permits.release("acme")
    assert permits.is_unused


async def test_a_permit_handed_to_somebody_who_just_left_goes_to_the_next() -> None:
    permits = FairSemaphore(1, free_ratio=UNSHARED, max_queued=9)
    assert permits.try_acquire("acme")
    leaving, staying = asyncio.ensure_future(permits.acquire("globex")), asyncio.ensure_future(permits.acquire("zeta"))
    await until(permits, 2)
    permits.release("acme")
    leaving.cancel()
    await staying
    assert leaving.cancelled() or leaving.exception() is None
    permits.release("zeta")
    assert permits.is_unused


async def test_nothing_is_lost_whoever_comes_and_leaves() -> None:
    permits, rolls = FairSemaphore(5, free_ratio=1, max_queued=1_000), random.Random(7)
    under_way = 0

    async def call(owner: int) -> None:
        nonlocal under_way
        if not permits.try_acquire(owner):
            await permits.acquire(owner, asyncio.get_running_loop().time() + rolls.choice([0, 5]))
        under_way += 1
        assert under_way <= 5
        for _ in range(rolls.randrange(4)):
            await asyncio.sleep(0)
        under_way -= 1
        permits.release(owner)

    async def guarded(owner: int) -> None:
        try:
            await call(owner)
        except TimeoutError:
            return

    calls = [asyncio.ensure_future(guarded(rolls.randrange(6))) for _ in range(300)]
    for each in rolls.sample(calls, 60):
        await asyncio.sleep(0)
        each.cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    assert permits.is_unused
    assert under_way >= 0
    assert (len(permits._line), permits._free) == (0, 5)
