"""Sharing one attempt among many callers."""

from __future__ import annotations

import asyncio

import pytest

from proxy.single_flight import SingleFlight


async def test_callers_of_one_key_share_one_attempt() -> None:
    flight: SingleFlight[str, int] = SingleFlight()
    started, release = [], asyncio.Event()

    async def attempt() -> int:
        started.append(1)
        await release.wait()
        return 7

    waiting = [asyncio.ensure_future(flight.run("a", attempt)) for _ in range(50)]
    other = asyncio.ensure_future(flight.run("b", attempt))
    await asyncio.sleep(0)
    release.set()
    assert await asyncio.gather(*waiting, other) == [7] * 51
    assert len(started) == 2


async def test_a_caller_that_gives_up_does_not_take_the_attempt_away() -> None:
    flight: SingleFlight[str, int] = SingleFlight()
    release = asyncio.Event()

    async def attempt() -> int:
        await release.wait()
        return 7

    leader = asyncio.ensure_future(flight.run("a", attempt))
    follower = asyncio.ensure_future(flight.run("a", attempt))
    await asyncio.sleep(0)
    leader.cancel()
    release.set()
    assert await follower == 7
    with pytest.raises(asyncio.CancelledError):
        await leader


async def test_a_failure_reaches_all_and_is_not_kept() -> None:
    flight: SingleFlight[str, int] = SingleFlight()
    outcomes = iter([ValueError("first"), None])

    async def attempt() -> int:
        await asyncio.sleep(0)
        fault = next(outcomes)
        if fault:
            raise fault
        return 7

    failed = await asyncio.gather(*(flight.run("a", attempt) for _ in range(3)), return_exceptions=True)
    assert [type(one) for one in failed] == [ValueError] * 3
    assert await flight.run("a", attempt) == 7


async def test_an_attempt_that_does_not_outlive_its_callers() -> None:
    flight: SingleFlight[str, int] = SingleFlight(outlives_callers=False)
    ended: list[str] = []

    async def attempt() -> int:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        return 7

    async def quick() -> int:
        return 8

    callers = [asyncio.ensure_future(flight.run("a", attempt)) for _ in range(2)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    callers[0].cancel()
    await asyncio.wait(callers[:1])
    assert ended == []
    callers[1].cancel()
    await asyncio.sleep(0)
    assert await flight.run("a", quick) == 8, "nobody joins what is being given up"
    await asyncio.wait(callers)
    assert ended == ["cancelled"]
    assert flight._waiters == {}
    assert flight._running == {}


async def test_an_attempt_that_has_just_ended_is_not_joined() -> None:
    """Its result is known before the loop has turned once more, and may be older than what the caller has seen."""
    flight: SingleFlight[str, int] = SingleFlight()
    numbers = iter(range(10))
    joined: list[int] = []

    async def attempt() -> int:
        return next(numbers)

    async def first() -> None:
        joined.append(await flight.run("a", attempt))

    waiting = asyncio.ensure_future(first())
    await asyncio.sleep(0)
    task = flight._running["a"]
    while not task.done():
        await asyncio.sleep(0)
    flight._running["a"] = task  # as in the pass of the loop before its callback has run
    assert await flight.run("a", attempt) == 1
    await waiting
    assert joined == [0]
