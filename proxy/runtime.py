"""What one event loop of one process keeps: connections, sessions, tool lists, callers, the audit writer."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import weakref
from dataclasses import dataclass, field

from django.conf import settings

from audit.writer import AuditWriter
from gateway.coordination import registry
from gateway.coordination.store import CoordinationStore
from proxy.cache.result_cache import ResultCache
from proxy.cache.scope_epochs import ScopeEpochs
from proxy.snapshot import Snapshots
from proxy.tool_watch import ToolWatch
from proxy.vendors.bulkhead import Bulkhead
from proxy.vendors.circuits import Circuits
from proxy.vendors.pool import SessionPool
from proxy.vendors.tool_index import ToolDirectory
from proxy.vendors.transport import Limits, VendorTransport

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
    audit: AuditWriter
    scope_epochs: ScopeEpochs
    results: ResultCache = field(default_factory=ResultCache)
    refusals_noted: dict[str, int] = field(default_factory=dict)
    sweeper: asyncio.Task[None] | None = None

    async def aclose(self) -> None:
        """End sessions at vendors, flush the audit, close connections."""
        if self.sweeper is not None:
            self.sweeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self.sweeper
        await self.pool.aclose()
        await self.pool.circuits.aclose()
        await self.audit.aclose()
        await self.transport.aclose()
        await self.tool_watch.aclose()
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


async def start() -> None:
    """Open what the first call would have to wait for, and take what is loaded by now out of garbage collection.

    What a call leaves behind is freed by counting references; cycles are rare, so they are looked for rarely.
    """
    current()
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
    transport = VendorTransport(allow_private=settings.ALLOW_PRIVATE_ENDPOINTS, limits=limits)
    bulkhead = Bulkhead(
        calls=settings.VENDOR_CALLS_PER_ORGANIZATION,
        waiting=settings.VENDOR_CALLS_WAITING,
        wait_s=settings.VENDOR_CALLS_WAIT_S,
    )
    circuits = Circuits(store, trial_s=limits.connect_s)
    pool = SessionPool(transport, idle_s=settings.VENDOR_SESSION_IDLE_S, bulkhead=bulkhead, circuits=circuits)
    snapshots = Snapshots(store)
    tool_watch = ToolWatch(snapshots)
    directory = ToolDirectory(
        pool,
        settings.VENDOR_TOOL_CONFIG,
        ttl_s=settings.TOOL_LIST_TTL_S,
        max_pages=settings.TOOL_LIST_MAX_PAGES,
        on_fetched=tool_watch.note,
    )
    audit = AuditWriter()
    audit.start()
    return Runtime(store, snapshots, transport, pool, directory, tool_watch, audit, ScopeEpochs(store))


async def _sweep(pool: SessionPool) -> None:
    while True:
        await asyncio.sleep(SWEEP_EVERY_S)
        pool.close_idle()
