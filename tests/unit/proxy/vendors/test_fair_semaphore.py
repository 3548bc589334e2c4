"""Places shared out among owners: none can take them all, lines are served in turn, and nothing is lost."""

from __future__ import annotations

import asyncio
import random

import pytest

from proxy.vendors.fair_semaphore import UNSHARED, FairSemaphore, QueueFull


def taken(places: FairSemaphore, owner: object, wanted: int) -> int:
    """The number of places, of so many, that an owner gets at once."""
    return sum(places.take(owner) for _ in range(wanted))


@pytest.mark.parametrize(("owners", "left_at_least"), [(1, 50), (2, 25), (4, 6), (6, 1)])
def test_few_owners_that_want_all_leave_places_for_others(owners: int, left_at_least: int) -> None:
    places = FairSemaphore(100, of_free=1, waiting=10)
    held = [taken(places, owner, 100) for owner in range(owners)]
    assert 100 - sum(held) >= left_at_least
    assert places.take("newcomer")


def test_an_owner_alone_may_have_all_where_nobody_else_can_come() -> None:
    assert taken(FairSemaphore(7, of_free=UNSHARED, waiting=1), "acme", 10) == 7
    assert taken(FairSemaphore(16, of_free=1, most_of_one=4, waiting=1), "acme", 10) == 4


async def until(lines: FairSemaphore, waiting: int) -> None:
    while lines._waiting != waiting:
        await asyncio.sleep(0)


async def test_lines_are_served_in_turn() -> None:
    places = FairSemaphore(1, of_free=UNSHARED, waiting=100)
    assert places.take("acme")
    served: list[str] = []

    async def call(owner: str) -> None:
        await places.wait(owner)
        served.append(owner)
        places.give_back(owner)

    calls = []
    for owner in ["acme"] * 5 + ["globex"] * 2 + ["zeta"]:
        calls.append(asyncio.ensure_future(call(owner)))
        await until(places, len(calls))
    assert not places.take("acme"), "others of it wait"
    places.give_back("acme")
    await asyncio.gather(*calls)
    assert served == ["acme", "globex", "zeta", "acme", "globex", "acme", "acme", "acme"]
    assert places.is_unused


async def test_who_may_have_no_more_lets_others_pass() -> None:
    places = FairSemaphore(4, of_free=1, waiting=100)
    assert taken(places, "acme", 9) == 2
    waiting = asyncio.ensure_future(places.wait("acme"))
    await until(places, 1)
    assert places.take("globex")
    assert not places.take("globex")
    assert places.take("zeta")
    places.give_back("zeta")
    places.give_back("globex")
    assert not waiting.done()
    places.give_back("acme")
    await waiting
    assert taken(places, "zeta", 9) == 1


async def test_a_line_has_an_end_and_a_deadline() -> None:
    places = FairSemaphore(1, of_free=UNSHARED, waiting=1)
    assert places.take("acme")
    with pytest.raises(TimeoutError):
        await places.wait("globex", asyncio.get_running_loop().time() - 1)
    left = asyncio.ensure_future(places.wait("globex"))
    await until(places, 1)
    with pytest.raises(QueueFull):
        await places.wait("zeta")
    left.cancel()
    with pytest.raises(asyncio.CancelledError):
        await left
    places.give_back("acme")
    assert places.is_unused


async def test_a_place_handed_to_somebody_who_just_left_goes_to_the_next() -> None:
    places = FairSemaphore(1, of_free=UNSHARED, waiting=9)
    assert places.take("acme")
    leaving, staying = asyncio.ensure_future(places.wait("globex")), asyncio.ensure_future(places.wait("zeta"))
    await until(places, 2)
    places.give_back("acme")
    leaving.cancel()
    await staying
    assert leaving.cancelled() or leaving.exception() is None
    places.give_back("zeta")
    assert places.is_unused


async def test_nothing_is_lost_whoever_comes_and_leaves() -> None:
    places, rolls = FairSemaphore(5, of_free=1, waiting=1_000), random.Random(7)
    under_way = 0

    async def call(owner: int) -> None:
        nonlocal under_way
        if not places.take(owner):
            await places.wait(owner, asyncio.get_running_loop().time() + rolls.choice([0, 5]))
        under_way += 1
        assert under_way <= 5
        for _ in range(rolls.randrange(4)):
            await asyncio.sleep(0)
        under_way -= 1
        places.give_back(owner)

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
    assert places.is_unused
    assert under_way >= 0
    assert (places._waiting, places._free) == (0, 5)
