"""Tokens of vendor connections, renewed for the calls of this process. Spec: contract §8

A renewal is a task of its own: a caller who leaves does not end it, because the vendor may have ended the former token.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Protocol, TypeVar
from uuid import UUID

import structlog

from credentials.connection_refresh import Busy, Claim, ask, claim, note_wanted_scopes, settle
from credentials.resolve import CredentialRef
from proxy.hot_path_database import DatabaseUnavailable
from proxy.single_flight import SingleFlight

log = structlog.get_logger(__name__)
T = TypeVar("T")
# Requests to authorization servers at the same time; others wait in line.
THREADS = 8
# While the former token works, a call waits this long for the new one.
PATIENCE_S = 1.0
# When it no longer works: longer than one process may take.
WAIT_S = 30.0
LOOK_EVERY_S = 0.1
# A token this close to its end may end on the way to the vendor.
MARGIN_S = 5.0
# The vendor's answer is kept for so many tries to store it: it cannot be asked for again.
STORE_TRIES = 20
MAX_WANTED = 1_000
STORE_EVERY_S = 0.5


class DatabaseThreads(Protocol):
    async def run_in_db_thread(self, work: Callable[[], T]) -> T: ...


class VendorTokens:
    """One event loop. `now_s` is Unix time."""

    def __init__(
        self,
        database: DatabaseThreads,
        *,
        now_s: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._database = database
        self._now_s, self._sleep = now_s, sleep
        self._running: SingleFlight[tuple[UUID, int], CredentialRef | None] = SingleFlight()
        self._tasks: set[asyncio.Task[object]] = set()
        # Noted by this process: not every refused call writes.
        self._wanted: dict[UUID, tuple[int, str]] = {}
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="vendor-tokens")

    async def current(self, connection: CredentialRef) -> CredentialRef | None:
        """The connection with a token to use; None if it has ended. Raises: DatabaseUnavailable.

        Ahead of its end the former token is returned where the new one does not come soon.
        """
        now_s = self._now_s()
        if connection.refresh_at_s is None or connection.refresh_at_s > now_s:
            return connection
        renewal = self._running.run((connection.id, connection.revision), partial(self._renew, connection))
        if not self._works(connection):
            return await renewal
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await renewal
        except (TimeoutError, DatabaseUnavailable):
            return connection

    async def after_rejection(self, connection: CredentialRef) -> CredentialRef | None:
        """The connection with a new token, after the vendor refused the one that `connection` has; None if it has
        ended. Without a new token it has the same revision. Raises: DatabaseUnavailable."""
        key = (connection.id, connection.revision)
        return await self._running.run(key, partial(self._renew, connection, is_rejected=True))

    async def note_wanted_scopes(self, connection: CredentialRef, scopes: str) -> None:
        """Raises: DatabaseUnavailable."""
        wanted = (connection.revision, scopes)
        if self._wanted.get(connection.id) == wanted:
            return
        await self._database.run_in_db_thread(partial(note_wanted_scopes, connection.id, scopes))
        if len(self._wanted) >= MAX_WANTED:
            self._wanted.clear()
        self._wanted[connection.id] = wanted

    async def aclose(self) -> None:
        """Waits for renewals under way: their answers cannot be asked for again."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=WAIT_S)
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _renew(self, connection: CredentialRef, *, is_rejected: bool = False) -> CredentialRef | None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        ends_s = self._now_s() + WAIT_S
        while True:
            look = partial(claim, connection.id, connection.revision, is_rejected=is_rejected)
            found = await self._database.run_in_db_thread(look)
            if isinstance(found, Claim):
                answer = await asyncio.get_running_loop().run_in_executor(self._threads, ask, found)
                return await self._stored(partial(settle, found, answer))
            if not isinstance(found, Busy):
                return found
            if (self._works(connection) and not is_rejected) or self._now_s() >= ends_s:
                return found.ref
            await self._sleep(LOOK_EVERY_S)

    def _works(self, connection: CredentialRef) -> bool:
        return connection.expires_at_s is None or connection.expires_at_s - MARGIN_S > self._now_s()

    async def _stored(self, store: Callable[[], CredentialRef | None]) -> CredentialRef | None:
        """Raises: DatabaseUnavailable after STORE_TRIES."""
        for left in reversed(range(STORE_TRIES)):
            try:
                return await self._database.run_in_db_thread(store)
            except DatabaseUnavailable:
                if not left:
                    log.error("vendor token not stored")
                    raise
                await self._sleep(STORE_EVERY_S)
        raise AssertionError("unreachable")
