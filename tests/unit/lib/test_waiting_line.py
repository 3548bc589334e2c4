"""Slots pass from task to task: in turn by owner, never lost, and never handed to two tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.lib.waiting_line import WaitingLine


@dataclass
class Slots:
    """The smallest user of a line: it counts slots."""

    free: int
    given_back: int = 0
    line: WaitingLine[str] = field(default_factory=WaitingLine)

    async def acquire(self, owner: str, deadline: float | None = None) -> None:
        if self.free:
            self.free -= 1
        else:
            await self.line.wait(owner, self.give_back, deadline)

    def give_back(self) -> None:
        self.given_back += 1
        self.release()

    def release(self) -> None:
        if not self.line.hand_over_to_next():
            self.free += 1


async def begin(slots: Slots, *owners: str) -> list[asyncio.Task[None]]:
    tasks = [asyncio.ensure_future(slots.acquire(owner)) for owner in owners]
    await asyncio.sleep(0)
    return tasks


async def test_owners_are_served_round_robin_and_tasks_of_one_in_order() -> None:
    slots, served = Slots(0), []
    tasks = await begin(slots, "a", "a", "a", "b", "c", "b")
    for number, task in enumerate(tasks):
        task.add_done_callback(lambda _, number=number: served.append(number))
    for _ in tasks:
        slots.release()
        await asyncio.sleep(0.001)
    assert served == [0, 3, 4, 1, 5, 2]
    assert (len(slots.line), slots.free, slots.line.by_owner) == (0, 0, {})


async def test_an_owner_that_was_moved_waits_behind_the_others() -> None:
    slots = Slots(0)
    a, b = await begin(slots, "a", "b")
    slots.line.move_to_end("a")
    slots.line.move_to_end("unknown")
    slots.release()
    await b
    assert not a.done()
    slots.release()
    await a


async def test_a_slot_goes_to_the_named_owner_or_stays() -> None:
    slots = Slots(0)
    a, b = await begin(slots, "a", "b")
    assert slots.line.hand_over("b")
    assert not slots.line.hand_over("b")
    assert not slots.line.hand_over("unknown")
    await b
    assert len(slots.line) == 1
    slots.release()
    await a


async def test_a_task_that_waits_no_longer_than_its_deadline_leaves_the_line() -> None:
    slots = Slots(0)
    with pytest.raises(TimeoutError):
        await slots.acquire("a", asyncio.get_running_loop().time() + 0.001)
    assert (len(slots.line), slots.line.by_owner, slots.given_back) == (0, {}, 0)


@pytest.mark.parametrize("cancelled_first", [True, False])
async def test_a_slot_passes_a_task_that_is_cancelled_in_the_same_step(cancelled_first: bool) -> None:
    slots = Slots(0)
    leaving, staying = await begin(slots, "a", "a")
    steps: list[Callable[[], object]] = [slots.release, leaving.cancel]
    for step in reversed(steps) if cancelled_first else steps:
        step()
    await staying
    with pytest.raises(asyncio.CancelledError):
        await leaving
    assert slots.given_back == (0 if cancelled_first else 1)
    assert (slots.free, len(slots.line)) == (0, 0)


async def test_a_slot_handed_over_as_the_deadline_passes_is_given_back() -> None:
    slots, loop = Slots(0), asyncio.get_running_loop()
    deadline = loop.time() + 0.01
    leaving = asyncio.ensure_future(slots.acquire("a", deadline))
    await asyncio.sleep(0)
    loop.call_at(deadline, slots.release)  # runs after the timeout, in the same step of the loop
    while loop.time() <= deadline:
        pass
    with pytest.raises(TimeoutError):
        await leaving
    assert (slots.free, len(slots.line)) == (1, 0)


STEPS = st.lists(st.tuples(st.sampled_from(["come", "release", "cancel", "turn"]), st.integers(0, 30)), max_size=80)


@given(st.integers(1, 3), STEPS)
def test_no_slot_is_lost_and_none_is_handed_twice(size: int, steps: list[tuple[str, int]]) -> None:
    asyncio.run(play(size, steps))


async def play(size: int, steps: list[tuple[str, int]]) -> None:
    """Tasks come, release and are cancelled in any order, several of it in one step of the loop."""
    slots, tasks, holding = Slots(size), [], []

    async def hold(owner: str, release: asyncio.Event) -> None:
        await slots.acquire(owner)
        holding.append(release)
        assert len(holding) + slots.free <= size
        try:
            await release.wait()
        finally:
            holding.remove(release)
            slots.release()

    for step, number in steps:
        if step == "come":
            tasks.append(asyncio.ensure_future(hold(str(number % 3), asyncio.Event())))
        elif step == "release" and holding:
            holding[number % len(holding)].set()
        elif step == "cancel" and tasks:
            tasks[number % len(tasks)].cancel()
        elif step == "turn":
            await asyncio.sleep(0)
    while not all(task.done() for task in tasks):
        for event in holding:
            event.set()
        async with asyncio.timeout(60):  # a lost slot leaves a task in the line
            await asyncio.sleep(0)
    assert not [task for task in tasks if not task.cancelled() and task.exception()]
    assert (slots.free, len(slots.line), slots.line.by_owner) == (size, 0, {})
