"""Commands asked for at the same time travel to the store together: a round trip costs far more than what it carries.

A command that finds nothing under way leaves at once, alone. While trips are under way the next commands gather, so a
busy process makes few trips with many commands and an idle one does not wait. Each command is answered, or fails, for
itself.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

TRIPS_AT_ONCE = 2
MOST_COMMANDS = 64

C = TypeVar("C")


class SharedTrips(Generic[C]):
    """`travel` sends commands and returns as many answers, exceptions among them. One event loop."""

    def __init__(self, travel: Callable[[Sequence[C]], Awaitable[Sequence[object]]]) -> None:
        self._travel = travel
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[tuple[C, asyncio.Future[object]]] = deque()
        self._trips = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_leaving = False

    async def ask(self, command: C) -> object:
        """The answer to `command`. A caller that leaves takes nobody else's answer away.

        Raises: what `travel` raised or answered for it.
        """
        if self._trips == 0 and not self._waiting:
            return await self._alone(command)
        future: asyncio.Future[object] = self._loop.create_future()
        self._waiting.append((command, future))
        if not self._is_leaving and self._trips < TRIPS_AT_ONCE:
            self._is_leaving = True
            self._loop.call_soon(self._leave)  # whoever else asks in this pass of the loop comes along
        return await future

    async def _alone(self, command: C) -> object:
        self._trips += 1
        try:
            [answer] = await self._travel([command])
        finally:
            self._arrived()
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def _leave(self) -> None:
        self._is_leaving = False
        batch: list[tuple[C, asyncio.Future[object]]] = []
        while self._waiting and len(batch) < MOST_COMMANDS:
            command, future = self._waiting.popleft()
            if not future.done():  # who left meanwhile is not counted
                batch.append((command, future))
        if batch:
            self._trips += 1
            task = asyncio.ensure_future(self._go(batch))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _go(self, batch: Sequence[tuple[C, asyncio.Future[object]]]) -> None:
        answers: Sequence[object]
        try:
            answers = await self._travel([command for command, _ in batch])
        except BaseException as fault:
            fell_away = isinstance(fault, asyncio.CancelledError)
            answers = [ConnectionAbortedError("closed") if fell_away else fault] * len(batch)
        finally:
            self._arrived()
        for (_, future), answer in zip(batch, answers, strict=True):
            if future.done():
                continue
            if isinstance(answer, BaseException):
                future.set_exception(answer)
            else:
                future.set_result(answer)

    def _arrived(self) -> None:
        self._trips -= 1
        if self._waiting and not self._is_leaving:
            self._leave()
