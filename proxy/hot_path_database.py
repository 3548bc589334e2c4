"""The database reads and writes of the hot path, each with a deadline.

Rows of callers come over a connection of the event loop where the database is PostgreSQL. Everything else runs in a
few threads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connections

from credentials.access_rows import BY_ORGANIZATION
from gateway.lib.database_threads import with_own_connection
from gateway.lib.json_statement import JsonStatement
from gateway.lib.reserved_connections import use_reserved_connections
from oauth_ext.bearer_rows import BY_ACCESS_TOKEN, BY_AGENT_KEY
from oauth_ext.jwt.keys import SigningKeysUnavailable

# Threads for database reads; HOT_PATH_CONNECTIONS counts them.
DB_THREADS = 3
# Longest wait of a call for its caller's rows.
DB_DEADLINE_S = 5.0
STATEMENTS = (BY_ACCESS_TOKEN, BY_AGENT_KEY, BY_ORGANIZATION)
T = TypeVar("T")


class DatabaseUnavailable(Exception):
    """The database is unavailable, and the cached rows are too old to use."""


class HotPathDatabase:
    """Belongs to one event loop."""

    def __init__(self, is_database_down: Callable[[], bool]) -> None:
        self._is_database_down = is_database_down
        # An OSError: no file is left for a connection.
        self._faults: tuple[type[Exception], ...] = (DatabaseError, InterfaceError, SigningKeysUnavailable, OSError)
        self._reader = None
        if connections["default"].vendor == "postgresql":
            # Imported only for such a database, because psycopg takes 9 MB.
            import psycopg

            from gateway.lib.loop_reader import LoopReader, LostConnection, open_reading_connection

            timeouts = settings.HOT_PATH_TIMEOUTS
            entry = connections["default"].settings_dict
            self._reader = LoopReader(
                partial(open_reading_connection, entry, timeouts, STATEMENTS), answer_s=timeouts.response_timeout_s
            )
            self._faults = (*self._faults, psycopg.Error, LostConnection)
        self.db_threads = ThreadPoolExecutor(
            DB_THREADS,
            thread_name_prefix="caller-cache",
            initializer=use_reserved_connections,
            initargs=(settings.HOT_PATH_CONNECTIONS, settings.HOT_PATH_TIMEOUTS),
        )
        self.write_thread = ThreadPoolExecutor(1, thread_name_prefix="caller-cache-writes")

    async def read(self, statement: JsonStatement, value: str) -> bytes | None:
        """The statement's JSON text; None without a row. Raises: DatabaseUnavailable."""
        if self._reader is None:
            return await self.run_in_thread(partial(statement.ask, value))
        if self._is_database_down():
            raise DatabaseUnavailable("the database is away")
        try:
            async with asyncio.timeout(DB_DEADLINE_S):
                return await self._reader.read(statement, value)
        except self._faults as fault:
            raise DatabaseUnavailable(type(fault).__name__) from fault

    async def run_in_thread(self, work: Callable[[], T], threads: ThreadPoolExecutor | None = None) -> T:
        """Run database work in the threads for reads, or in `threads`. Raises: DatabaseUnavailable."""
        if threads is None and self._is_database_down():
            raise DatabaseUnavailable("the database is away")
        loop = asyncio.get_running_loop()
        try:
            # The thread goes on after the timeout; only the wait ends.
            async with asyncio.timeout(DB_DEADLINE_S):
                return await loop.run_in_executor(threads or self.db_threads, with_own_connection, work)
        except self._faults as fault:
            raise DatabaseUnavailable(type(fault).__name__) from fault

    async def aclose(self) -> None:
        for threads in (self.db_threads, self.write_thread):
            threads.shutdown(wait=False, cancel_futures=True)
        if self._reader is not None:
            await self._reader.aclose()
