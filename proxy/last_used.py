"""Notes when clients and agent keys were last used: many in one transaction, outside the calls."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Awaitable, Callable
from functools import partial

import structlog

from gateway.lib import clock
from oauth_ext import bearer as bearers
from proxy.hot_path_database import DatabaseUnavailable

# Uses are gathered for this long: a process that meets a thousand callers a second writes a few statements.
GATHER_S = 2.0
MAX_PENDING = 10_000  # clients; further ones are noted at a later call
log = structlog.get_logger(__name__)
Run = Callable[[Callable[[], None]], Awaitable[None]]


class LastUsed:
    """One event loop. `run` runs database work in a thread."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._pending: dict[uuid.UUID, bool] = {}  # client to whether its agent key was used
        self._task: asyncio.Task[None] | None = None
        self._at_once = asyncio.Event()

    def note(self, client_pk: uuid.UUID, is_agent_key: bool) -> None:
        pending = self._pending
        if client_pk in pending or len(pending) < MAX_PENDING:
            pending[client_pk] = is_agent_key or pending.get(client_pk, False)
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._write())

    async def flush(self, timeout_s: float) -> None:
        """Wait until all uses so far are written."""
        if self._task is not None:
            self._at_once.set()
            await asyncio.wait({self._task}, timeout=timeout_s)

    async def _write(self) -> None:
        while self._pending:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._at_once.wait(), GATHER_S)
            uses, self._pending = self._pending, {}
            keys = [client_pk for client_pk, is_agent_key in uses.items() if is_agent_key]
            try:
                await self._run(partial(bearers.record_uses, list(uses), keys, clock.now()))
            except DatabaseUnavailable as fault:
                log.warning("last use not recorded", clients=len(uses), fault=str(fault))
        self._at_once.clear()
