"""Slices of work take turns, and the work leaves most of the time to others."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from functools import partial

import pytest

from proxy.vendors import fair_scheduler
from proxy.vendors.fair_scheduler import FairScheduler


async def order_of(scheduler: FairScheduler, owners: Sequence[str]) -> list[str]:
    """The owners served, in order, when a call of each asks for one slice while another one is under way."""
    order: list[str] = []
    inside: list[str] = []

    async def work(owner: str, name: str) -> None:
        async with scheduler.slot(owner):
            inside.append(name)
            assert len(inside) == 1
            await asyncio.sleep(0)
            order.append(inside.pop())

    async with scheduler.slot("first"):
        calls = [asyncio.ensure_future(work(owner, f"{owner}{number}")) for number, owner in enumerate(owners)]
        await asyncio.sleep(0)
    await asyncio.gather(*calls)
    return order


async def test_one_slice_at_a_time_in_the_order_of_asking() -> None:
    assert await order_of(FairScheduler(), ["a"] * 5) == ["a0", "a1", "a2", "a3", "a4"]


async def test_one_owners_many_calls_put_one_slice_before_anothers() -> None:
    order = await order_of(FairScheduler(), [*["a"] * 5, "b", "c", "b"])
    assert order == ["a0", "b5", "c6", "a1", "b7", "a2", "a3", "a4"]


async def test_who_comes_back_at_once_stands_behind_all_other_owners() -> None:
    scheduler, order = FairScheduler(), []

    async def read(owner: str, slices: int) -> None:
        for _ in range(slices):
            async with scheduler.slot(owner):
                await asyncio.sleep(0)
                order.append(owner)

    await asyncio.gather(*(read("a", 4) for _ in range(30)), read("b", 4))
    last = max(place for place, owner in enumerate(order) if owner == "b")
    assert order.count("a") == 120
    assert last <= 8, "a slice of the other's before each, whatever its number of calls"


async def test_who_has_worked_pauses_for_longer_than_it_worked(monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler, clock, pauses = FairScheduler(), [0.0], []
    sleep = asyncio.sleep

    async def recording(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(0)

    monkeypatch.setattr(fair_scheduler, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(asyncio, "sleep", recording)
    for number, worked_s in enumerate((0.0002, 0.0002, 0.0004, 0.01, 0.0, 1.0, 0.0)):
        async with scheduler.slot(number):
            clock[0] += worked_s
    assert pauses == pytest.approx([0.0048, 0.06, 0.1]), "small slices add up; no pause is longer than the longest"


async def test_long_work_runs_one_at_a_time_beside_the_loop_and_owners_alternate() -> None:
    order: list[str] = []
    is_running = threading.Lock()

    def work(name: str) -> str:
        assert threading.current_thread() is not threading.main_thread()
        assert is_running.acquire(blocking=False), "one at a time"
        order.append(name)
        is_running.release()
        return name

    async with fair_scheduler._of_loop(fair_scheduler._thread_schedulers).slot("first"):
        asked = [
            asyncio.ensure_future(fair_scheduler.run_in_thread(name[0], partial(work, name)))
            for name in ("a1", "a2", "a3", "b1")
        ]
        await asyncio.sleep(0)
    assert await asyncio.gather(*asked) == ["a1", "a2", "a3", "b1"]
    assert order == ["a1", "b1", "a2", "a3"]
    with pytest.raises(ZeroDivisionError):
        await fair_scheduler.run_in_thread("a", lambda: 1 // 0)
    assert await fair_scheduler.run_in_thread("b", lambda: 7) == 7


async def test_a_slot_that_does_not_come_in_time_is_given_up_and_holds_up_nobody() -> None:
    scheduler = FairScheduler()
    async with scheduler.slot("a"):
        with pytest.raises(TimeoutError):
            async with scheduler.slot("b", asyncio.get_running_loop().time() + 0.01):
                raise AssertionError("it is somebody else's turn")
    async with asyncio.timeout(60), scheduler.slot("b"):
        assert not scheduler._line


async def test_a_caller_that_leaves_in_its_pause_holds_nobody_up() -> None:
    scheduler = FairScheduler()
    scheduler._worked_s = 10.0

    async def enter() -> None:
        async with scheduler.slot("a"):
            return

    leaving = asyncio.ensure_future(enter())
    await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.wait([leaving])
    await asyncio.wait_for(enter(), 60)


@pytest.mark.parametrize("handed_over", [False, True])
async def test_a_caller_that_leaves_its_queue_holds_nobody_up(handed_over: bool) -> None:
    scheduler, served = FairScheduler(), []

    async def enter(name: str, owner: str) -> None:
        async with scheduler.slot(owner):
            served.append(name)

    async with scheduler.slot("first"):
        names = [("leaving", "a"), ("behind", "a"), ("other", "b")]
        leaving, *rest = (asyncio.ensure_future(enter(name, owner)) for name, owner in names)
        await asyncio.sleep(0)
        if not handed_over:
            leaving.cancel()
    if handed_over:
        leaving.cancel()  # its turn has come, and it has not begun
    await asyncio.wait_for(asyncio.gather(*rest), 60)
    assert sorted(served) == ["behind", "other"]
    assert not scheduler._line
    await asyncio.wait_for(enter("later", "a"), 60)


async def test_a_fault_in_a_slice_ends_it() -> None:
    scheduler = FairScheduler()
    with pytest.raises(LookupError):
        async with scheduler.slot("a"):
            raise LookupError
    async with asyncio.timeout(60), scheduler.slot("b"):
        pass
