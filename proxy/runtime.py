"""What one event loop of one process keeps: connections, sessions, tool lists, callers, the audit writer."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import weakref
from dataclasses import dataclass, field

import structlog
from django.conf import settings

from audit.writer import AuditWriter
from gateway.coordination import registry
from gateway.coordination.store import CoordinationStore
from proxy.cache.result_cache import ResultCache
from proxy.cache.scope_epochs import ScopeEpochs
from proxy.outbox_relay import keep_relaying
from proxy.rate_limited_calls import RateLimitedCalls
from proxy.secret_watch import SecretWatch
from proxy.snapshot import Snapshots
from proxy.tool_watch import ToolWatch
from proxy.vendors.bulkhead import Bulkhead
from proxy.vendors.circuits import Circuits
from proxy.vendors.pool import SessionPool
from proxy.vendors.tool_index import ToolDirectory
from proxy.vendors.transport import Limits, VendorTransport

log = structlog.get_logger(__name__)
SWEEP_EVERY_S = 30.0
GARBAGE_THRESHOLDS = (20_000, 20, 20)


@dataclass(slots=True)
class Runtime:
    """Built by `current()`; closed with its loop."""

    store: CoordinationStore
    snapshots: Snapshots
    transport: VendorTransport
    pool: SessionPool
    directory: ToolDirectory
    tool_watch: ToolWatch
    secret_watch: SecretWatch
    audit: AuditWriter
    rate_limited: RateLimitedCalls
    scope_epochs: ScopeEpochs
    results: ResultCache = field(default_factory=ResultCache)
    sweeper: asyncio.Task[None] | None = None
    relay: asyncio.Task[None] | None = None

    async def aclose(self) -> None:
        """End sessions at vendors, flush the audit, close connections."""
        for task in (self.sweeper, self.relay):
            if task is not None:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        await self.results.settled()
        await self.pool.aclose()
        await self.pool.circuits.aclose()
        await self.rate_limited.aclose()
        await self.audit.aclose()
        await self.transport.aclose()
        await self.tool_watch.aclose()
        await self.secret_watch.aclose()
        await self.store.aclose()
        await self.snapshots.aclose()


_runtimes: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Runtime] = weakref.WeakKeyDictionary()


def current() -> Runtime:
    """The running loop's runtime, made at first use."""
    loop = asyncio.get_running_loop()
    found = _runtimes.get(loop)
    if found is None:
        found = _runtimes[loop] = _build()
        found.sweeper = asyncio.ensure_future(_sweep(found.pool))
    return found


def existing() -> Runtime | None:
    """The running loop's runtime, if anything has been served yet."""
    return _runtimes.get(asyncio.get_running_loop())


async def start() -> None:
    """Open what the first call would have to wait for, and take what is loaded by now out of garbage collection.

    What a call leaves behind is freed by counting references; cycles are rare, so they are looked for rarely.
    """
    found = current()
    if registry.uses_outbox():
        found.relay = asyncio.ensure_future(keep_relaying(found.store, found.snapshots))
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GARBAGE_THRESHOLDS)


async def stop() -> None:
    """Close the running loop's runtime."""
    found = _runtimes.pop(asyncio.get_running_loop(), None)
    if found is not None:
        await found.aclose()


def _build() -> Runtime:
    limits = Limits(
        connect_s=settings.VENDOR_CONNECT_TIMEOUT_S,
        chunk_s=settings.VENDOR_CHUNK_TIMEOUT_S,
        body_bytes=settings.VENDOR_REPLY_BYTES,
    )
    store = registry.current()
    transport = VendorTransport(
        allow_private=settings.ALLOW_PRIVATE_ENDPOINTS,
        limits=limits,
        connections_per_origin=settings.VENDOR_CONNECTIONS_PER_ORIGIN,
        own_url=settings.BASE_URL,
    )
    bulkhead = Bulkhead(
        calls=settings.VENDOR_CALLS_PER_ORGANIZATION,
        waiting=settings.VENDOR_CALLS_WAITING,
        wait_s=settings.VENDOR_CALLS_WAIT_S,
    )
    circuits = Circuits(store, trial_s=limits.connect_s)
    pool = SessionPool(transport, idle_s=settings.VENDOR_SESSION_IDLE_S, bulkhead=bulkhead, circuits=circuits)
    audit = AuditWriter()
    audit.start()
    snapshots = Snapshots(store, is_away=lambda: audit.outage.is_away)
    tool_watch = ToolWatch(snapshots)
    secret_watch = SecretWatch(snapshots)
    pool.on_secret_echoed = secret_watch.note
    directory = ToolDirectory(
        pool,
        settings.VENDOR_TOOL_CONFIG,
        ttl_s=settings.TOOL_LIST_TTL_S,
        max_pages=settings.TOOL_LIST_MAX_PAGES,
        on_fetched=tool_watch.note,
    )
    rate_limited = RateLimitedCalls(snapshots)
    return Runtime(
        *(store, snapshots, transport, pool, directory, tool_watch, secret_watch, audit, rate_limited),
        scope_epochs=ScopeEpochs(store),
    )


async def _sweep(pool: SessionPool) -> None:
    while True:
        await asyncio.sleep(SWEEP_EVERY_S)
        try:
            pool.close_idle()
        except Exception:  # the next round may do better; without one, idle sessions would stay for good
            log.exception("idle sessions not closed")
