"""Records vendors that echo stored credentials: the value is masked, and the organization's log names the tool."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from functools import partial

import structlog

from audit.actor import system
from gateway.lib.background_tasks import BackgroundTasks
from gateway.lib.bounded import put_newest
from gateway.lib.sentences import sentence
from orgs.services.secret_echoes import record_echo
from proxy.caller_cache import CallerCache
from proxy.hot_path_database import DatabaseUnavailable
from proxy.vendors.destination import PoolKey

log = structlog.get_logger(__name__)
ACTOR = system(sentence("secret watch"))
WINDOW_S = 3600.0  # at most one audit row per tool in this time
# Tools in memory; the oldest is dropped first.
MAX_RECORDED = 5_000


class SecretEchoDetector:
    """One event loop. `record` returns at once and writes in the background."""

    def __init__(self, caller_cache: CallerCache, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._caller_cache = caller_cache
        self._monotonic = monotonic
        self._tasks = BackgroundTasks()
        self._recorded_at_s: OrderedDict[tuple[PoolKey, str], float] = OrderedDict()

    def record(self, key: PoolKey, tool: str) -> None:
        """Record that this tool echoed a stored value; `tool` is the vendor's own name."""
        now_s = self._monotonic()
        recorded_at_s = self._recorded_at_s.get((key, tool))
        if recorded_at_s is not None and now_s - recorded_at_s < WINDOW_S:
            return
        put_newest(self._recorded_at_s, (key, tool), now_s, MAX_RECORDED)
        log.warning("stored credential masked in an answer", vendor=key.vendor, org_id=str(key.org_id), tool=tool)
        self._tasks.start(self._write_row(key, tool))

    async def aclose(self) -> None:
        """Wait for all writes."""
        await self._tasks.settled()

    async def _write_row(self, key: PoolKey, tool: str) -> None:
        work = partial(record_echo, org_id=key.org_id, vendor=key.vendor, tool=tool, actor=ACTOR)
        try:
            await self._caller_cache.run_in_write_thread(work)
        except DatabaseUnavailable as fault:
            self._recorded_at_s.pop((key, tool), None)  # the next echo tries again
            log.warning("masked credential not recorded", vendor=key.vendor, fault=str(fault))
