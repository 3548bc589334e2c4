"""State of one event loop of a process: connections, sessions, tool lists, callers, audit writer."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.conf import settings

from audit.writer import AuditWriter
from gateway.coordination import backend
from gateway.coordination.store import CoordinationStore
from gateway.lib import clock
from gateway.lib.periodic import run_periodically
from proxy.cache.list_bodies import ListBodies
from proxy.cache.result_cache import ResultCache
from proxy.cache.scope_epochs import ScopeEpochs
from proxy.caller_cache import CallerCache
from proxy.outbox_relay import keep_relaying
from proxy.rate_limited_calls import RateLimitedCalls
from proxy.secret_echo_detector import SecretEchoDetector
from proxy.tool_change_detector import ToolChangeDetector
from proxy.vendors.bulkhead import Bulkhead
from proxy.vendors.circuits import Circuits
from proxy.vendors.pool import SessionPool
from proxy.vendors.stored_lists import StoredLists
from proxy.vendors.tool_index import ToolDirectory
from proxy.vendors.transport import VendorTransport, configured_limits, configured_transport

if TYPE_CHECKING:  # without Redis its library is not imported
    from gateway.coordination.blob_store import BlobStore

# Interval in which idle vendor sessions are closed.
SWEEP_EVERY_S = 30.0
# gc.set_threshold: allocations until a generation 0 collection, then collections until generations 1 and 2. Calls leave
# few reference cycles, so 20,000 instead of CPython's 700.
GARBAGE_THRESHOLDS = (20_000, 20, 20)


@dataclass(slots=True)
class Runtime:
    """Created by `current()`, closed with its loop."""

    store: CoordinationStore
    caller_cache: CallerCache
    transport: VendorTransport
    pool: SessionPool
    directory: ToolDirectory
    tool_change_detector: ToolChangeDetector
    secret_echo_detector: SecretEchoDetector
    audit: AuditWriter
    rate_limited: RateLimitedCalls
    scope_epochs: ScopeEpochs
    list_bodies: ListBodies
    blobs: BlobStore | None
    results: ResultCache
    sweeper: asyncio.Task[None] | None = None
    relay: asyncio.Task[None] | None = None

    async def aclose(self) -> None:
        """End vendor sessions, flush the audit log, close connections."""
        for task in (self.sweeper, self.relay):
            if task is not None:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        await self.results.settled()
        await self.directory.aclose()
        if self.blobs is not None:
            self.blobs.close()
        await self.pool.aclose()
        await self.pool.circuits.settled()
        await self.rate_limited.aclose()
        await self.audit.aclose()
        await self.transport.aclose()
        await self.tool_change_detector.aclose()
        await self.secret_echo_detector.aclose()
        await self.store.aclose()
        await self.caller_cache.aclose()


_runtimes: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Runtime] = weakref.WeakKeyDictionary()


def current() -> Runtime:
    """The running loop's runtime, created at first use."""
    loop = asyncio.get_running_loop()
    found = _runtimes.get(loop)
    if found is None:
        found = _runtimes[loop] = _build()
        found.sweeper = asyncio.ensure_future(
            run_periodically(found.pool.close_idle, SWEEP_EVERY_S, "idle sessions not closed")
        )
    return found


def existing() -> Runtime | None:
    """The running loop's runtime; None before the first request."""
    return _runtimes.get(asyncio.get_running_loop())


async def start() -> None:
    """Prepare what the first call would wait for, and exclude all loaded objects from garbage collection."""
    found = current()
    if backend.uses_outbox():
        found.relay = asyncio.ensure_future(keep_relaying(found.store, found.caller_cache))
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GARBAGE_THRESHOLDS)


async def stop() -> None:
    found = _runtimes.pop(asyncio.get_running_loop(), None)
    if found is not None:
        await found.aclose()


def _build() -> Runtime:
    limits = configured_limits()
    store = backend.current()
    transport = configured_transport(limits, connections_per_origin=settings.VENDOR_CONNECTIONS_PER_ORIGIN)
    bulkhead = Bulkhead(
        calls=settings.VENDOR_CALLS_PER_ORGANIZATION,
        max_queued=settings.VENDOR_CALLS_QUEUED,
        wait_s=settings.VENDOR_CALLS_WAIT_S,
    )
    circuits = Circuits(store, trial_s=limits.connect_s, max_circuits=settings.VENDOR_CIRCUITS)
    pool = SessionPool(
        transport,
        idle_s=settings.VENDOR_SESSION_IDLE_S,
        max_sessions=settings.VENDOR_SESSIONS,
        max_awake=settings.VENDOR_SESSIONS_AWAKE,
        bulkhead=bulkhead,
        circuits=circuits,
    )
    audit = AuditWriter()
    audit.start()
    caller_cache = CallerCache(store, is_database_down=lambda: audit.outage.is_active)
    tool_change_detector = ToolChangeDetector(caller_cache, max_compared=settings.TOOL_INDEXES)
    secret_echo_detector = SecretEchoDetector(caller_cache)
    pool.on_secret_echoed = secret_echo_detector.record
    blobs = backend.blob_store()
    directory = ToolDirectory(
        pool,
        settings.VENDOR_TOOL_CONFIG,
        ttl_s=settings.TOOL_LIST_TTL_S,
        max_pages=settings.TOOL_LIST_MAX_PAGES,
        max_indexes=settings.TOOL_INDEXES,
        max_list_bytes=settings.TOOL_LIST_BYTES,
        longest_s=settings.TOOL_LIST_LONGEST_S,
        stored=_stored_lists(blobs),
        on_fetched=tool_change_detector.submit,
    )
    rate_limited = RateLimitedCalls(caller_cache)
    return Runtime(
        *(
            store,
            caller_cache,
            transport,
            pool,
            directory,
            tool_change_detector,
            secret_echo_detector,
            audit,
            rate_limited,
        ),
        blobs=blobs,
        scope_epochs=ScopeEpochs(store),
        list_bodies=ListBodies(max_bytes=settings.TOOL_LIST_BODY_BYTES),
        results=ResultCache(capacity_bytes=settings.RESULT_CACHE_BYTES),
    )


def _stored_lists(blobs: BlobStore | None) -> StoredLists | None:
    if blobs is None:
        return None
    ttl_s = int(settings.TOOL_LIST_LONGEST_S)
    return StoredLists(blobs, settings.SECRET_KEY.encode(), ttl_s=ttl_s, now_s=lambda: clock.now().timestamp())
