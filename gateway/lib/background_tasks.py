"""Tasks that go on after the work that started them."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


class BackgroundTasks(set[asyncio.Task[None]]):
    """Running tasks of one event loop, which itself holds no reference that would keep them alive."""

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self.add(task)
        task.add_done_callback(self.discard)
        return task

    async def settled(self) -> None:
        """Wait for all, also for those that start meanwhile."""
        while self:
            await asyncio.wait(set(self))
