"""Slices of work take turns, and the work leaves most of the time to others."""

from __future__ import annotations

import asyncio

import pytest

from proxy.vendors import turns
from proxy.vendors.turns import Turns


async def test_one_slice_at_a_time_in_the_order_of_asking() -> None:
    lane, order, inside = Turns(), [], []

    async def work(number: int) -> None:
        async with lane:
            inside.append(number)
            assert len(inside) == 1
            await asyncio.sleep(0)
            order.append(inside.pop())

    await asyncio.gather(*(work(number) for number in range(10)))
    assert order == list(range(10))


async def test_who_has_worked_pauses_for_longer_than_it_worked(monkeypatch: pytest.MonkeyPatch) -> None:
    lane, clock, pauses = Turns(), [0.0], []
    sleep = asyncio.sleep

    async def noting(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(0)

    monkeypatch.setattr(turns, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(asyncio, "sleep", noting)
    for worked_s in (0.001, 0.0005, 0.0015, 0.01, 0.0, 1.0, 0.0):
        async with lane:
            clock[0] += worked_s
    assert pauses == pytest.approx([0.012, 0.04, 0.1]), "small slices add up; no pause is longer than the longest"


async def test_a_caller_that_leaves_in_its_pause_holds_nobody_up() -> None:
    lane = Turns()
    lane._worked_s = 10.0

    async def enter() -> None:
        async with lane:
            return

    leaving = asyncio.ensure_future(enter())
    await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.wait([leaving])
    await asyncio.wait_for(enter(), 5)
