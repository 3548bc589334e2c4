"""Commands that share a round trip: who travels with whom, and that each gets its own answer or fault."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from gateway.coordination import shared_trips
from gateway.coordination.shared_trips import SharedTrips


class Store:
    """Answers a number with its double, or with what `odd` says; waits while `gate` is closed."""

    def __init__(self) -> None:
        self.trips: list[list[int]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.fault: BaseException | None = None
        self.odd: dict[int, BaseException] = {}
        self.shared = SharedTrips(self.travel)

    async def travel(self, commands: Sequence[int]) -> Sequence[object]:
        self.trips.append(list(commands))
        await asyncio.sleep(0)
        await self.gate.wait()
        if self.fault is not None:
            raise self.fault
        return [self.odd.get(command, 2 * command) for command in commands]


async def asked(store: Store, numbers: Sequence[int]) -> list[object]:
    return await asyncio.gather(*map(store.shared.ask, numbers), return_exceptions=True)


async def test_who_asks_together_travels_together_and_gets_the_own_answer() -> None:
    store = Store()
    assert await asked(store, [1, 2, 3]) == [2, 4, 6]
    assert await asked(store, [4]) == [8]
    assert store.trips == [[1], [2, 3], [4]], "the first does not wait for the others"


async def test_while_trips_are_under_way_the_others_gather() -> None:
    store = Store()
    store.gate.clear()
    tasks = []
    for number in range(10):
        tasks.append(asyncio.ensure_future(store.shared.ask(number)))
        for _ in range(3):
            await asyncio.sleep(0)
    assert store.trips == [[0], [1]]
    store.gate.set()
    assert await asyncio.gather(*tasks) == [2 * number for number in range(10)]
    assert store.trips == [[0], [1], [2, 3, 4, 5, 6, 7, 8, 9]]


async def test_a_trip_has_a_largest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_trips, "MOST_COMMANDS", 4)
    store = Store()
    assert await asked(store, range(10)) == [2 * number for number in range(10)]
    assert sorted(map(len, store.trips)) == [1, 1, 4, 4]


async def test_one_fault_is_of_its_command_and_a_broken_trip_of_all_in_it() -> None:
    store = Store()
    store.odd[2] = ValueError("odd")
    first, second, third = await asked(store, [1, 2, 3])
    assert (first, third) == (2, 6)
    assert isinstance(second, ValueError)
    store.fault = OSError("gone")
    assert [type(fault) for fault in await asked(store, [1, 2])] == [OSError, OSError]
    store.fault = None
    assert await asked(store, [5]) == [10]


async def test_who_leaves_takes_nobodys_answer_away() -> None:
    store = Store()
    store.gate.clear()
    first = asyncio.ensure_future(store.shared.ask(0))
    await asyncio.sleep(0)
    leaving, staying = (asyncio.ensure_future(store.shared.ask(number)) for number in (1, 2))
    await asyncio.sleep(0.01)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    store.gate.set()
    assert (await first, await staying) == (0, 4)
    assert store.trips == [[0], [1, 2]]


async def test_who_travels_alone_may_leave_too() -> None:
    store = Store()
    store.gate.clear()
    leaving = asyncio.ensure_future(store.shared.ask(1))
    await asyncio.sleep(0.01)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    store.gate.set()
    assert await asked(store, [2, 3]) == [4, 6]


async def test_who_left_before_the_trip_is_not_sent() -> None:
    store = Store()
    store.gate.clear()
    tasks = [asyncio.ensure_future(store.shared.ask(number)) for number in range(4)]
    await asyncio.sleep(0.01)
    late = [asyncio.ensure_future(store.shared.ask(number)) for number in (7, 8)]
    await asyncio.sleep(0.01)
    late[0].cancel()
    await asyncio.sleep(0.01)
    store.gate.set()
    assert await asyncio.gather(*tasks, late[1]) == [0, 2, 4, 6, 16]
    assert store.trips == [[0], [1, 2, 3], [8]]
