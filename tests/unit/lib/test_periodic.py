"""Periodic work goes on after a failure and ends with its task."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest
from structlog.testing import capture_logs

from gateway.lib.periodic import run_periodically


@pytest.mark.parametrize("is_async", [True, False])
async def test_rounds_go_on_after_a_failure_until_the_task_is_cancelled(is_async: bool) -> None:
    rounds: list[int] = []

    def work() -> None:
        rounds.append(len(rounds))
        if len(rounds) == 2:
            raise RuntimeError("once")

    async def work_async() -> None:
        work()

    def begin() -> Awaitable[None] | None:
        return work_async() if is_async else work()  # type: ignore[func-returns-value]

    with capture_logs() as logged:
        task = asyncio.ensure_future(run_periodically(begin, 0.0, "not done"))
        async with asyncio.timeout(60):
            while len(rounds) < 4:
                await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    done = len(rounds)
    await asyncio.sleep(0)
    assert len(rounds) == done
    assert [(each["event"], each["log_level"]) for each in logged] == [("not done", "error")]
