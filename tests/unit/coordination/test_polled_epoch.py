"""An epoch that one call in each half second reads for all: who waits, how old a value may be, and what an outage does.

Spec: D23 · docs/decisions/0052
"""

from __future__ import annotations

import asyncio

import pytest

from gateway.coordination.polled_epoch import EVERY_S, USED_FOR_S, PolledEpoch
from gateway.coordination.store import CoordinationUnavailable


class Store:
    """Answers with `value`, at once or when `answers` is set."""

    def __init__(self) -> None:
        self.value = "one"
        self.reads = 0
        self.is_silent = False
        self.answers = asyncio.Event()
        self.answers.set()

    async def read(self) -> str:
        self.reads += 1
        value = self.value
        await self.answers.wait()
        if self.is_silent:
            raise CoordinationUnavailable("silent")
        return value


class Clock:
    now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
async def store() -> Store:
    return Store()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def epoch(store: Store, clock: Clock) -> PolledEpoch:
    return PolledEpoch(store.read, clock)


async def test_a_crowd_reads_it_once(store: Store, epoch: PolledEpoch) -> None:
    assert await asyncio.gather(*(epoch.current() for _ in range(50))) == ["one"] * 50
    assert store.reads == 1
    epoch.refresh()
    assert await epoch.current() == "one"
    assert store.reads == 1, "not due yet"


async def test_a_change_is_seen_without_a_wait_and_then_by_all(store: Store, clock: Clock, epoch: PolledEpoch) -> None:
    await epoch.current()
    store.value = "two"
    clock.now_s += EVERY_S - 0.001
    epoch.refresh()
    assert (await epoch.current(), store.reads) == ("one", 1)
    clock.now_s += 0.001
    store.answers.clear()
    epoch.refresh()
    assert await epoch.current() == "one", "the value is young enough, and the read goes on beside the call"
    store.answers.set()
    clock.now_s += 0.01
    while store.reads < 2 or await epoch.current() == "one":
        await asyncio.sleep(0)
    assert (await epoch.current(), store.reads) == ("two", 2)


async def test_no_call_uses_a_value_of_a_second_ago(store: Store, clock: Clock, epoch: PolledEpoch) -> None:
    """The first call after a pause waits for the read, and so does one that finds the loop late."""
    await epoch.current()
    store.value = "two"
    clock.now_s += USED_FOR_S + 0.001
    assert USED_FOR_S < 1.0
    assert await epoch.current() == "two"


async def test_an_age_counts_from_the_question(store: Store, clock: Clock, epoch: PolledEpoch) -> None:
    store.answers.clear()
    waiting = asyncio.ensure_future(epoch.current())
    while not store.reads:
        await asyncio.sleep(0)
    clock.now_s += USED_FOR_S + 0.001
    store.value = "two"
    store.answers.set()
    assert await waiting == "one"
    assert await epoch.current() == "two"


async def test_while_the_store_is_away_it_is_unknown_and_known_at_once_afterwards(
    store: Store, clock: Clock, epoch: PolledEpoch
) -> None:
    await epoch.current()
    store.is_silent, store.value = True, "two"
    clock.now_s += EVERY_S
    epoch.refresh()
    assert await epoch.current() == "one", "young enough"
    clock.now_s += EVERY_S
    for _ in range(2):
        with pytest.raises(CoordinationUnavailable, match="silent"):
            await epoch.current()
    store.is_silent = False
    assert await epoch.current() == "two"


async def test_a_read_of_another_kind_is_news_unless_it_is_older(
    store: Store, clock: Clock, epoch: PolledEpoch
) -> None:
    await epoch.current()
    epoch.learn("three", clock.now_s + 0.1)
    epoch.learn("two", clock.now_s + 0.05)
    assert (await epoch.current(), store.reads) == ("three", 1)


async def test_a_caller_that_leaves_takes_the_answer_from_no_other(store: Store, epoch: PolledEpoch) -> None:
    store.answers.clear()
    leaves, stays = (asyncio.ensure_future(epoch.current()) for _ in range(2))
    await asyncio.sleep(0)
    leaves.cancel()
    await asyncio.sleep(0)
    store.answers.set()
    assert await stays == "one"
    assert leaves.cancelled()


async def test_an_open_read_ends_with_the_loop(store: Store, epoch: PolledEpoch) -> None:
    epoch.close()
    store.answers.clear()
    epoch.refresh()
    while not store.reads:
        await asyncio.sleep(0)
    reading = epoch._reading
    assert reading is not None
    epoch.close()
    await asyncio.wait({reading})
    assert (store.reads, reading.cancelled()) == (1, True)
