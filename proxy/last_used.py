"""Notes when clients, agent keys and credentials were last used: many in one transaction, outside the calls."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
import uuid
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from functools import partial

import structlog

from credentials.uses import RECORD_USE_EVERY, record_credential_uses
from gateway.lib import clock
from gateway.lib.bounded import put_newest
from oauth_ext import bearer as bearers
from proxy.hot_path_database import DatabaseUnavailable

# Uses are gathered for this long: a process that meets a thousand callers a second writes a few statements.
GATHER_S = 2.0
MAX_PENDING = 10_000  # clients; further ones are noted at a later call
CREDENTIAL_EVERY_S = RECORD_USE_EVERY.total_seconds() + GATHER_S
log = structlog.get_logger(__name__)
Run = Callable[[Callable[[], None]], Awaitable[None]]


class LastUsed:
    """One event loop. `run` runs database work in a thread."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._pending: dict[uuid.UUID, set[uuid.UUID]] = {}  # client to the agent keys that were used
        self._credentials: set[uuid.UUID] = set()
        # By credential: when this process noted it, in seconds of the monotonic clock.
        self._credential_noted_s: OrderedDict[uuid.UUID, float] = OrderedDict()
        self._task: asyncio.Task[None] | None = None
        self._at_once = asyncio.Event()

    def note(self, client_pk: uuid.UUID, key_pk: uuid.UUID | None) -> None:
        pending = self._pending
        if client_pk in pending or len(pending) < MAX_PENDING:
            keys = pending.setdefault(client_pk, set())
            if key_pk is not None:
                keys.add(key_pk)
        self._write_soon()

    def note_credential(self, pk: uuid.UUID) -> None:
        """Cheap for a credential that was noted lately: a look into a table."""
        now_s = time.monotonic()
        if now_s - self._credential_noted_s.get(pk, -math.inf) < CREDENTIAL_EVERY_S:
            return
        put_newest(self._credential_noted_s, pk, now_s, MAX_PENDING)
        self._credentials.add(pk)
        self._write_soon()

    async def flush(self, timeout_s: float) -> None:
        """Wait until all uses so far are written."""
        if self._task is not None:
            self._at_once.set()
            await asyncio.wait({self._task}, timeout=timeout_s)

    def _write_soon(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._write())

    async def _write(self) -> None:
        while self._pending or self._credentials:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._at_once.wait(), GATHER_S)
            uses, self._pending = self._pending, {}
            credentials, self._credentials = self._credentials, set()
            keys = [key_pk for of_client in uses.values() for key_pk in of_client]
            try:
                await self._run(partial(_record, list(uses), keys, list(credentials)))
            except DatabaseUnavailable as fault:
                log.warning("last use not recorded", clients=len(uses), credentials=len(credentials), fault=str(fault))
        self._at_once.clear()


def _record(clients: list[uuid.UUID], keys: list[uuid.UUID], credentials: list[uuid.UUID]) -> None:
    now = clock.now()
    if clients:
        bearers.record_uses(clients, keys, now)
    record_credential_uses(credentials, now)
