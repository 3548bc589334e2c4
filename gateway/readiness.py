"""Readiness: the database takes writes, migrations are applied, and the coordination store admits. Spec: D134, D156"""

from __future__ import annotations

import asyncio
import time
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection
from django.db.migrations.executor import MigrationExecutor

from gateway.coordination import backend
from gateway.coordination.rules import Rule
from gateway.coordination.store import CoordinationUnavailable
from gateway.lib.database_threads import with_own_connection
from gateway.lib.reserved_connections import use_reserved_connections
from proxy import runtime

State = Literal["ok", "degraded", "failed"]
CACHE_S = 2.0  # load balancers ask often, and strangers may
DEADLINE_S = 3.0  # of the database's answer
# An admission like a call's: a store that answers but takes no writes (a replica, no memory) counts as degraded.
PROBE_RULE = Rule("readiness", limit=1_000_000, window_s=60)


class Readiness:
    """The checks of one event loop."""

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._cached: dict[str, State] | None = None
        self._cached_until_s = 0.0
        self._running: asyncio.Task[dict[str, State]] | None = None

    async def checks(self) -> dict[str, State]:
        """The states of `database`, `migrations` and `coordination`, at most CACHE_S old. Callers share one check."""
        if self._cached is not None and self._monotonic() < self._cached_until_s:
            return self._cached
        if self._running is None or self._running.done():
            self._running = asyncio.ensure_future(self._check())
        return await asyncio.shield(self._running)

    def last_checks(self) -> dict[str, State] | None:
        """The states of the last check, however old; None before the first."""
        return self._cached

    async def _check(self) -> dict[str, State]:
        (database, migrations), coordination = await asyncio.gather(_database_states(), coordination_state())
        self._cached = {"database": database, "migrations": migrations, "coordination": coordination}
        self._cached_until_s = self._monotonic() + CACHE_S
        return self._cached


_of_loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Readiness] = weakref.WeakKeyDictionary()
_threads = ThreadPoolExecutor(
    1,
    thread_name_prefix="readiness",
    initializer=use_reserved_connections,  # a process stays ready when pages use up their connections
    initargs=(settings.HOT_PATH_CONNECTIONS, settings.HOT_PATH_TIMEOUTS),
)
_is_migrated = False  # never checked again once it is True


def current() -> Readiness:
    return _of_loops.setdefault(asyncio.get_running_loop(), Readiness())


async def _database_states() -> tuple[State, State]:
    """The states of the database and of its migrations, within DEADLINE_S."""
    serving = runtime.existing()
    if serving is not None and serving.audit.outage.is_active:
        return "failed", "ok" if _is_migrated else "failed"
    try:
        async with asyncio.timeout(DEADLINE_S):
            return await asyncio.get_running_loop().run_in_executor(_threads, with_own_connection, database_states)
    except TimeoutError:
        return "failed", "ok" if _is_migrated else "failed"


def database_states() -> tuple[State, State]:
    global _is_migrated
    try:
        database: State = "ok" if _is_writable() else "failed"
        if not _is_migrated:
            executor = MigrationExecutor(connection)
            _is_migrated = not executor.migration_plan(executor.loader.graph.leaf_nodes())
        return database, "ok" if _is_migrated else "failed"
    except (DatabaseError, InterfaceError):
        return "failed", "ok" if _is_migrated else "failed"


def _is_writable() -> bool:
    # A standby, or a server made read-only, answers and can serve no call.
    with connection.cursor() as cursor:
        if connection.vendor != "postgresql":
            cursor.execute("SELECT 1")
            return True
        cursor.execute("SELECT current_setting('transaction_read_only')")
        return bool(cursor.fetchone()[0] == "off")


async def coordination_state() -> State:
    """`degraded` while each process counts limits by itself, which does not stop it from serving. Spec: D156"""
    try:
        admission = await backend.current().admit(PROBE_RULE, "ready", ())
    except CoordinationUnavailable:
        return "degraded"
    return "ok" if admission.epochs is not None else "degraded"
