"""A late loop is no slow store, and a slow store is not waited for."""

from __future__ import annotations

import asyncio
import time

import pytest

from gateway.coordination.busy_aware_timeout import MAX_RECHECKS, BusyAwareTimeout

PATIENCE_S = 0.05


async def answer_after(delay_s: float) -> str:
    """An answer that is there when nobody looks: the delay passes whether the loop comes round or not."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[str] = loop.create_future()

    def arrive() -> None:
        if not answer.done():
            answer.set_result("here")

    loop.call_later(delay_s, arrive)
    return await answer


async def test_an_answer_in_time() -> None:
    async with BusyAwareTimeout(PATIENCE_S):
        assert await answer_after(0.001) == "here"


async def test_a_store_that_does_not_answer() -> None:
    started = time.monotonic()
    with pytest.raises(TimeoutError):
        async with BusyAwareTimeout(PATIENCE_S):
            await answer_after(60)
    assert time.monotonic() - started >= PATIENCE_S


async def test_an_answer_that_a_busy_loop_sees_late() -> None:
    async with BusyAwareTimeout(PATIENCE_S):
        asyncio.get_running_loop().call_soon(time.sleep, 4 * PATIENCE_S)
        assert await answer_after(PATIENCE_S / 2) == "here"


async def test_an_answer_that_takes_several_late_rounds() -> None:
    async with BusyAwareTimeout(PATIENCE_S):
        for _ in range(3):
            asyncio.get_running_loop().call_soon(time.sleep, 2 * PATIENCE_S)
            assert await answer_after(PATIENCE_S / 2) == "here"


async def test_a_loop_that_is_always_late_does_not_wait_forever() -> None:
    loop, ended, passes = asyncio.get_running_loop(), asyncio.Event(), []

    def be_late() -> None:
        time.sleep(PATIENCE_S / 2)
        passes.append(1)
        if not ended.is_set():
            loop.call_soon(be_late)

    be_late()
    with pytest.raises(TimeoutError):
        async with BusyAwareTimeout(PATIENCE_S):
            await answer_after(60)
    ended.set()
    assert MAX_RECHECKS <= len(passes) <= 4 + 3 * MAX_RECHECKS


async def test_other_errors_and_cancellation_pass_through() -> None:
    with pytest.raises(ConnectionError):
        async with BusyAwareTimeout(PATIENCE_S):
            raise ConnectionError

    async def waits() -> None:
        async with BusyAwareTimeout(60):
            await answer_after(60)

    task = asyncio.ensure_future(waits())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_nothing_is_left_behind() -> None:
    async with BusyAwareTimeout(0.001):
        pass
    await asyncio.sleep(0.01)
    task = asyncio.current_task()
    assert task is not None
    assert not task.cancelling()
