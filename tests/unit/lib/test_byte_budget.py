"""The shares of owners, their waits, and the return of every byte."""

from __future__ import annotations

import asyncio

import pytest

from gateway.lib import byte_budget
from gateway.lib.byte_budget import BudgetExhausted, ByteBudget


def budget(wait_s: float = 5.0) -> ByteBudget:
    return ByteBudget(total=100, share=40, wait_s=wait_s)


async def begin(work: asyncio.Future[None] | object) -> asyncio.Task[None]:
    task = asyncio.ensure_future(work)  # type: ignore[arg-type]
    await asyncio.sleep(0)
    return task  # type: ignore[return-value]


async def test_an_owner_has_its_share_and_others_have_theirs() -> None:
    tried = budget(wait_s=0.01)
    await tried.take("a", 40)
    with pytest.raises(BudgetExhausted):
        await tried.take("a", 1)
    await tried.take("b", 40)
    await tried.take("c", 20)
    with pytest.raises(BudgetExhausted):
        await tried.take("d", 1)
    assert (tried.held, tried.held_by("a"), tried.held_by("d")) == (100, 40, 0)


async def test_more_than_a_share_is_refused_at_once() -> None:
    with pytest.raises(BudgetExhausted):
        await asyncio.wait_for(budget(wait_s=60).take("a", 41), 1)


async def test_the_owner_that_holds_least_is_served_first() -> None:
    tried = budget()
    for owner, count in (("a", 40), ("b", 40), ("c", 20)):
        await tried.take(owner, count)
    order: list[str] = []

    async def take(owner: str) -> None:
        await tried.take(owner, 10)
        order.append(owner)

    tasks = [await begin(take(owner)) for owner in ("b", "b", "c", "d")]
    tried.give_back("b", 40)  # b held most, and holds nothing now: it shares with d what became free
    await asyncio.gather(*tasks)
    assert set(order) == {"b", "c", "d"}
    assert order[-1] == "c", "it held most of those that waited"
    assert tried.held == 100


async def test_an_owner_at_its_share_is_passed_over() -> None:
    tried = budget()
    await tried.take("a", 40)
    waits = await begin(tried.take("a", 10))
    await tried.take("b", 10)
    assert not waits.done()
    tried.give_back("a", 40)
    await waits
    assert (tried.held_by("a"), tried.held_by("b")) == (10, 10)


async def test_many_small_ones_do_not_overtake_a_large_one() -> None:
    tried = budget()
    for owner in ("a", "b"):
        await tried.take(owner, 40)
    large = await begin(tried.take("c", 40))
    small = await begin(tried.take("d", 20))
    tried.give_back("a", 20)
    await large
    assert not small.done()
    tried.give_back("b", 20)
    await small


@pytest.mark.parametrize("how", ["cancelled", "too late", "granted and cancelled at once"])
async def test_what_a_waiter_that_leaves_was_given_comes_back(how: str) -> None:
    tried = budget(wait_s=0.01 if how == "too late" else 60)
    await tried.take("a", 40)
    waiter = await begin(tried.take("a", 10))
    if how == "granted and cancelled at once":
        tried.give_back("a", 40)
        waiter.cancel()
    elif how == "cancelled":
        waiter.cancel()
    await asyncio.wait([waiter])
    assert waiter.cancelled() or isinstance(waiter.exception(), BudgetExhausted)
    tried.give_back("a", tried.held_by("a")) if tried.held_by("a") else None
    assert tried.held == 0
    assert tried._waiting == {}
    await tried.take("a", 40)


async def test_a_hold_grows_shrinks_and_is_released_once() -> None:
    tried = budget(wait_s=0.01)
    hold = tried.hold("a")
    await hold.grow_to(30)
    await hold.grow_to(20)
    assert (hold.bytes, tried.held) == (30, 30)
    with pytest.raises(BudgetExhausted):
        await hold.grow_to(50)
    assert hold.bytes == 30
    hold.count(90)  # in memory already
    assert tried.held_by("a") == 90
    with pytest.raises(BudgetExhausted):
        await tried.take("b", 20)
    hold.shrink_to(10)
    for _ in range(2):
        hold.release()
    assert (hold.bytes, tried.held, tried._by_owner) == (0, 0, {})


async def test_a_thousand_waiters_are_served() -> None:
    tried = budget()
    await tried.take("a", 40)
    waiting = [await begin(tried.take("a", 1)) for _ in range(40)]
    with pytest.raises(BudgetExhausted):
        await budget(wait_s=0).take("a", 41)
    tried.give_back("a", 40)
    await asyncio.gather(*waiting)
    assert tried.held == 40


async def test_an_owner_with_a_long_line_keeps_nobody_from_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(byte_budget, "MAX_WAITING", 3)
    tried = budget(wait_s=60)
    await tried.take("a", 40)
    waiting = [await begin(tried.take("a", 40)) for _ in range(3)]
    with pytest.raises(BudgetExhausted):
        await tried.take("a", 1)
    await tried.take("b", 10)  # which fits: there is no waiting for it
    with pytest.raises(BudgetExhausted):
        await waiting[2]
    assert [each.done() for each in waiting[:2]] == [False, False]
    await tried.take("b", 30)
    tried.give_back("a", 40)
    await waiting[0]
    assert (tried.held_by("a"), tried.held_by("b"), tried.held) == (40, 40, 80)
    waiting[1].cancel()
    await asyncio.wait(waiting)
    tried.give_back("a", 40)
    tried.give_back("b", 40)
    assert tried.held == 0
    assert not tried._waiting
