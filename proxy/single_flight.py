"""Deduplicates concurrent attempts for the same key."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SingleFlight(Generic[K, V]):
    """At most one running attempt per key and event loop. A failure reaches all waiters and is not cached.

    The attempt is a task of its own, so that a caller's cancellation does not affect the others. With
    `outlives_callers` False it is cancelled when the last caller leaves.
    """

    def __init__(self, *, outlives_callers: bool = True) -> None:
        self._outlives_callers = outlives_callers
        self._running: dict[K, asyncio.Task[V]] = {}
        self._waiters: dict[asyncio.Task[V], int] = {}

    async def run(self, key: K, attempt: Callable[[], Awaitable[V]]) -> V:
        """The result of the running attempt for `key`, or of a new one."""
        task = self._running.get(key)
        if task is None or task.done():  # its done callback has not run yet, and its result predates this call
            task = asyncio.ensure_future(_await_attempt(attempt))
            self._running[key] = task
            task.add_done_callback(lambda done: self._on_done(key, done))
        if not self._outlives_callers:
            self._waiters[task] = self._waiters.get(task, 0) + 1
        try:
            return await asyncio.shield(task)
        finally:
            if not self._outlives_callers:
                self._on_caller_left(key, task)
            del task  # breaks the reference cycle of frame and exception, which only garbage collection would free

    def _on_caller_left(self, key: K, task: asyncio.Task[V]) -> None:
        self._waiters[task] -= 1
        if self._waiters[task]:
            return
        del self._waiters[task]
        if not task.done():
            self._remove(key, task)  # before cancelling, so that a new caller starts a new attempt
            task.cancel()

    def _on_done(self, key: K, task: asyncio.Task[V]) -> None:
        self._remove(key, task)
        if not task.cancelled():
            task.exception()  # retrieved, even if every caller has left

    def _remove(self, key: K, task: asyncio.Task[V]) -> None:
        if self._running.get(key) is task:
            del self._running[key]


async def _await_attempt(attempt: Callable[[], Awaitable[V]]) -> V:
    return await attempt()
