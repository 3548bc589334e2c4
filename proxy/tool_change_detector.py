"""Records changes in vendors' tool lists, which can mislead an agent. Spec: D78, D82 · reliability.md 2
(CVE-2025-54136)
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from uuid import UUID
from weakref import WeakValueDictionary

import structlog

from audit.actor import system
from gateway.lib.background_tasks import BackgroundTasks
from gateway.lib.bounded import put_newest
from gateway.lib.errors import NotFound
from gateway.lib.sentences import sentence
from orgs import selectors
from proxy.caller_cache import CallerCache
from proxy.credential_lists import CredentialDeleted, record_list
from proxy.hot_path_database import DatabaseUnavailable
from proxy.protocol.tool_definitions import approvable_json
from proxy.vendors.destination import PoolKey
from proxy.vendors.fair_scheduler import FairScheduler
from proxy.vendors.tool_list import ReceivedList, definitions_of

log = structlog.get_logger(__name__)
ACTOR = system(sentence("tool watch"))
MAX_QUEUED_PER_ORGANIZATION = 200  # lists, each kept until it is compared
# Bytes of those lists. One list per organization may always wait.
MAX_QUEUED_BYTES_PER_ORGANIZATION = 8 * 1024 * 1024
MAX_QUEUED_BYTES = 32 * 1024 * 1024
# One comparison at a time. The other threads allow further ones while a timed-out comparison still runs.
THREADS = 4
FIRST_PAUSE_S, LONGEST_PAUSE_S = 60.0, 3_600.0  # per vendor and organization, after a comparison that timed out
# Vendors of organizations in a pause; the oldest is dropped first.
MAX_PAUSED = 5_000


@dataclass(frozen=True, slots=True)
class _Compared:
    """A compared list: `digest` as received, `fingerprint` of what callers see."""

    digest: bytes
    fingerprint: bytes


# Each new list is compared with the last known one, in separate threads behind the call that fetched it. An allowlist
# is never extended: a new tool stays uncallable until a person allows it.
class ToolChangeDetector:
    """One event loop. `submit` returns at once."""

    def __init__(self, caller_cache: CallerCache, *, max_compared: int) -> None:
        """`max_compared`: of how many lists the last comparison is remembered; the oldest is dropped first."""
        self._max_compared = max_compared
        self._caller_cache = caller_cache
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="tool-changes")
        self._scheduler = FairScheduler()  # paces the comparisons
        self._queued: dict[PoolKey, ReceivedList] = {}
        # Organizations take turns, so that one cannot delay the comparisons of others.
        self._turns: OrderedDict[UUID, deque[PoolKey]] = OrderedDict()
        self._is_at_work = False
        # Many credentials wait with equal lists, of which one is kept.
        self._distinct: WeakValueDictionary[bytes, ReceivedList] = WeakValueDictionary()
        self._bytes_of: Counter[UUID] = Counter()
        self._queued_of: Counter[UUID] = Counter()
        self._tasks = BackgroundTasks()
        self._compared: OrderedDict[PoolKey, _Compared] = OrderedDict()
        self._pauses = _Pauses()
        self._running: set[UUID] = set()  # organizations with a thread at work

    def submit(self, key: PoolKey, received: ReceivedList) -> None:
        """Queue a fetched list for comparison, unless it was compared last; it replaces a queued older one."""
        received = self._distinct.setdefault(received.digest, received)
        queued, compared = self._queued.get(key), self._compared.get(key)
        if queued is not None:
            self._bytes_of[key.org_id] += received.size_bytes - queued.size_bytes
            self._queued[key] = received
            return
        if compared is not None and compared.digest == received.digest:
            return
        if self._is_full(key.org_id, received.size_bytes):
            log.warning("tool list not compared", vendor=key.vendor, fault="too many lists wait")
            return
        self._queued[key] = received
        self._queued_of[key.org_id] += 1
        self._bytes_of[key.org_id] += received.size_bytes
        self._turns.setdefault(key.org_id, deque()).append(key)
        self._start()

    def _is_full(self, org_id: UUID, size_bytes: int) -> bool:
        if not self._queued_of[org_id]:
            return False
        # One waiting list is always allowed.
        own = self._bytes_of[org_id] + size_bytes
        return (
            self._queued_of[org_id] >= MAX_QUEUED_PER_ORGANIZATION
            or own > MAX_QUEUED_BYTES_PER_ORGANIZATION
            or self._bytes_of.total() + size_bytes > MAX_QUEUED_BYTES
        )

    async def settled(self) -> None:
        """Wait until all queued lists are compared or have timed out."""
        await self._tasks.settled()

    async def aclose(self) -> None:
        await self.settled()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _start(self) -> None:
        """One task at a time: a process that starts may queue ten thousands of lists, and a task takes two kB."""
        if self._turns and not self._is_at_work:
            self._is_at_work = True
            self._tasks.start(self._compare_next())

    async def _compare_next(self) -> None:
        try:
            async with self._scheduler.slot(None):
                key, received = self._take()
                now_s = asyncio.get_running_loop().time()
                if key.org_id not in self._running and self._pauses.is_over(key, now_s):
                    await self._compare(key, received)  # otherwise at its next fetch
        except asyncio.CancelledError:
            self._turns.clear()
            raise
        finally:
            self._is_at_work = False
            self._start()

    def _take(self) -> tuple[PoolKey, ReceivedList]:
        """The next list of the organization whose turn it is; its other lists wait for another turn."""
        org_id, keys = self._turns.popitem(last=False)
        key = keys.popleft()
        if keys:
            self._turns[org_id] = keys
        received = self._queued.pop(key)
        self._queued_of[org_id] -= 1
        self._bytes_of[org_id] -= received.size_bytes
        if not self._queued_of[org_id]:
            del self._queued_of[org_id], self._bytes_of[org_id]
        return key, received

    async def _compare(self, key: PoolKey, received: ReceivedList) -> None:
        """The deadline starts here, not when the list was queued."""
        work = partial(_compare, key, received, self._compared.get(key))
        try:
            compared = await self._caller_cache.run_in_db_thread(partial(self._run, key.org_id, work), self._threads)
        except DatabaseUnavailable as fault:
            log.warning("tool list not compared", vendor=key.vendor, fault=str(fault))
            if isinstance(fault.__cause__, TimeoutError):
                self._pauses.begin(key, asyncio.get_running_loop().time())
            return
        self._pauses.end(key)
        put_newest(self._compared, key, compared, self._max_compared)

    def _run(self, org_id: UUID, work: Callable[[], _Compared]) -> _Compared:
        """In a thread, which continues after the deadline: the organization gets no second one meanwhile."""
        self._running.add(org_id)
        try:
            return work()
        finally:
            self._running.discard(org_id)


class _Pauses:
    """Backoff per organization and vendor: each consecutive timeout doubles the pause."""

    def __init__(self) -> None:
        # (end of the pause, its length), in seconds.
        self._known: OrderedDict[tuple[UUID, str], tuple[float, float]] = OrderedDict()

    def is_over(self, key: PoolKey, now_s: float) -> bool:
        ends_s, _ = self._known.get((key.org_id, key.vendor), (now_s, 0.0))
        return now_s >= ends_s

    def begin(self, key: PoolKey, now_s: float) -> None:
        name = (key.org_id, key.vendor)
        _, before_s = self._known.get(name, (0.0, 0.0))
        pause_s = min(max(2 * before_s, FIRST_PAUSE_S), LONGEST_PAUSE_S)
        put_newest(self._known, name, (now_s + pause_s, pause_s), MAX_PAUSED)

    def end(self, key: PoolKey) -> None:
        self._known.pop((key.org_id, key.vendor), None)


def _compare(key: PoolKey, received: ReceivedList, last: _Compared | None) -> _Compared:
    """Record changes unless callers see the same in the `last` list."""
    approvable = {name: approvable_json(definition) for name, definition in definitions_of(received).items()}
    fingerprint = hashlib.sha256(b"".join(approvable[name] for name in sorted(approvable))).digest()
    is_known = last is not None and last.fingerprint == fingerprint
    organization = None if is_known else selectors.organization(key.org_id)
    if organization is not None:
        try:
            record_list(
                organization=organization,
                vendor=key.vendor,
                credential_id=key.credential_id,
                definitions=approvable,
                actor=ACTOR,
            )
        except (CredentialDeleted, NotFound):
            log.info("organization or credential ended while tools were compared", org_id=str(key.org_id))
    return _Compared(received.digest, fingerprint)
