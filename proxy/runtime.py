"""State of one event loop of a process: connections, sessions, tool lists, callers, audit writer."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import weakref
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

import structlog
from django.conf import settings

from audit.writer import AuditWriter
from gateway.coordination import backend
from gateway.coordination.store import CoordinationStore
from gateway.lib import build_info, clock, huge_pages
from gateway.lib.metrics.process_file import ProcessFile
from gateway.lib.periodic import run_periodically
from proxy import process_gauges
from proxy.cache.list_bodies import ListBodies
from proxy.cache.result_cache import ResultCache
from proxy.cache.scope_epochs import ScopeEpochs
from proxy.cache.search_indexes import SearchIndexes
from proxy.caller_cache import CallerCache
from proxy.key_presence import stay_present
from proxy.outbox_relay import keep_relaying
from proxy.process_gauges import ProcessGauges
from proxy.protocol.item_kinds import CAPABILITIES, Capability
from proxy.rate_limited_calls import RateLimitedCalls
from proxy.secret_echo_detector import SecretEchoDetector
from proxy.sessions.listening_hub import ListeningHub
from proxy.sessions.question_desk import QuestionDesk
from proxy.sessions.session_states import SessionStates
from proxy.sessions.session_subscriptions import SessionSubscriptions
from proxy.sessions.shared_changes import SharedChanges
from proxy.sessions.stream_places import StreamPlaces
from proxy.tool_change_detector import ToolChangeDetector
from proxy.vendor_tokens import VendorTokens
from proxy.vendors.destination import PoolKey
from proxy.vendors.era_verdicts import configured_verdicts
from proxy.vendors.item_directory import ItemDirectory, configured_items
from proxy.vendors.pool import SessionPool, configured_pool
from proxy.vendors.stored_lists import StoredLists
from proxy.vendors.tool_directory import ToolDirectory, configured_directory
from proxy.vendors.transport import VendorTransport, configured_transport

if TYPE_CHECKING:  # the libraries of what is switched off are not imported
    from gateway.coordination.blob_store import BlobStore
    from gateway.coordination.exchange import Exchange
    from proxy.request_traces import RequestTraces

log = structlog.get_logger(__name__)
# Interval in which idle vendor sessions are closed.
SWEEP_EVERY_S = 30.0
# Callers and sessions that came meanwhile are on new pages.
HUGE_PAGES_EVERY_S = 30.0
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
    items: ItemDirectory
    tool_change_detector: ToolChangeDetector
    secret_echo_detector: SecretEchoDetector
    audit: AuditWriter
    rate_limited: RateLimitedCalls
    scope_epochs: ScopeEpochs
    list_bodies: ListBodies
    search_indexes: SearchIndexes
    blobs: BlobStore | None
    results: ResultCache
    vendor_tokens: VendorTokens
    exchange: Exchange
    session_states: SessionStates
    questions: QuestionDesk
    streams: StreamPlaces
    shared_changes: SharedChanges
    subscriptions: SessionSubscriptions
    listening: ListeningHub
    sweeper: asyncio.Task[None] | None = None
    relay: asyncio.Task[None] | None = None
    gauges: asyncio.Task[None] | None = None
    traces: RequestTraces | None = None  # only where traces are exported
    collapser: asyncio.Task[None] | None = None
    presence: asyncio.Task[None] | None = None

    async def aclose(self) -> None:
        """End vendor sessions, flush the audit log, close connections."""
        for task in (self.sweeper, self.relay, self.gauges, self.collapser, self.presence):
            if task is not None:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        await self.listening.aclose()
        await self.shared_changes.aclose()
        await self.questions.aclose()
        self.exchange.close()
        await self.results.settled()
        await self.vendor_tokens.aclose()
        await self.directory.aclose()
        await self.items.aclose()
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
        if self.traces is not None:
            await asyncio.to_thread(self.traces.close)


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
    await found.shared_changes.follow()
    found.presence = asyncio.ensure_future(stay_present(found.caller_cache.run_in_write_thread))
    if settings.METRICS_ADDRESS:
        found.gauges = asyncio.ensure_future(_keep_writing_figures(found))
    if settings.TRACES:
        found.traces = _request_traces()
    log.info("started", **build_info.current().labels())
    exclude_loaded_objects()
    if settings.HUGE_PAGES:
        found.collapser = asyncio.ensure_future(
            run_periodically(_collapse_pages, HUGE_PAGES_EVERY_S, "memory not moved to huge pages")
        )


def exclude_loaded_objects() -> None:
    """From garbage collection, which is rarer from now on."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GARBAGE_THRESHOLDS)


def _request_traces() -> RequestTraces:
    from gateway.lib.tracing import Tracing
    from proxy.request_traces import RequestTraces

    return RequestTraces(Tracing())


async def _keep_writing_figures(serving: Runtime) -> None:
    file = ProcessFile(settings.METRICS_FOLDER, "web")
    gauges = ProcessGauges(file, serving.audit, serving.pool, serving.transport)
    await run_periodically(gauges.write, process_gauges.EVERY_S, "metrics not written")


async def stop() -> None:
    found = _runtimes.pop(asyncio.get_running_loop(), None)
    if found is not None:
        await found.aclose()


def _collapse_pages() -> Awaitable[int]:
    # In a thread, because copying a page takes half a millisecond. The loop runs on meanwhile.
    return asyncio.to_thread(huge_pages.collapse)


def _build() -> Runtime:
    store = backend.current()
    transport = configured_transport()
    pool = configured_pool(transport, store, configured_verdicts(store))
    audit = AuditWriter()
    audit.start()
    caller_cache = CallerCache(store, is_database_down=lambda: audit.outage.is_active)
    tool_change_detector = ToolChangeDetector(caller_cache, max_compared=settings.TOOL_INDEXES)
    secret_echo_detector = SecretEchoDetector(caller_cache)
    pool.on_secret_echoed = secret_echo_detector.record
    blobs = backend.blob_store()
    directory = configured_directory(pool, tool_change_detector.submit, _stored_lists(blobs))
    rate_limited = RateLimitedCalls(caller_cache)
    exchange = backend.exchange()
    items = configured_items(pool)
    streams = _streams()
    return Runtime(
        *(
            store,
            caller_cache,
            transport,
            pool,
            directory,
            items,
            tool_change_detector,
            secret_echo_detector,
            audit,
            rate_limited,
        ),
        blobs=blobs,
        scope_epochs=ScopeEpochs(store),
        list_bodies=ListBodies(max_bytes=settings.TOOL_LIST_BODY_BYTES),
        search_indexes=SearchIndexes(max_bytes=settings.TOOL_SEARCH_BYTES),
        results=ResultCache(capacity_bytes=settings.RESULT_CACHE_BYTES),
        vendor_tokens=VendorTokens(caller_cache),
        exchange=exchange,
        session_states=_session_states(store, exchange),
        questions=_question_desk(exchange),
        streams=streams,
        shared_changes=_shared_changes(exchange, streams, directory, items),
        subscriptions=_session_subscriptions(exchange),
        listening=_listening(pool),
    )


def _streams() -> StreamPlaces:
    return StreamPlaces(
        of_all=settings.CHANGE_STREAMS,
        of_organization=settings.CHANGE_STREAMS_OF_ORGANIZATION,
        of_subject=settings.CHANGE_STREAMS_OF_SUBJECT,
    )


def _shared_changes(
    exchange: Exchange, streams: StreamPlaces, directory: ToolDirectory, items: ItemDirectory
) -> SharedChanges:
    """With a word to each stream when a list of its organization changes."""

    def mark_outdated(org_id: UUID, place: bytes, name: str) -> None:
        key = PoolKey(org_id, "", org_id, place)  # the digest alone counts
        if name == "tools":
            directory.mark_outdated(key)
        elif name in CAPABILITIES:
            items.mark_outdated(key, Capability(name))

    changes = SharedChanges(exchange, settings.SECRET_KEY.encode(), streams, mark_outdated)
    directory.on_fetched_list = items.on_fetched_list = lambda key: streams.announce(key.org_id)
    directory.on_announced = lambda key: changes.list_changed(key.org_id, key.digest, "tools")
    items.on_announced = lambda key, capability: changes.list_changed(key.org_id, key.digest, capability.value)
    return changes


def _listening(pool: SessionPool) -> ListeningHub:
    return ListeningHub(
        pool,
        of_all=settings.SUBSCRIPTIONS,
        of_vendor=settings.SUBSCRIPTIONS_AT_VENDOR,
        of_organization=settings.SUBSCRIPTIONS_OF_ORGANIZATION,
        of_subject=settings.SUBSCRIPTIONS_OF_SUBJECT,
        streams_of_vendor=settings.LISTENING_STREAMS_OF_VENDOR,
        streams_of_organization=settings.LISTENING_STREAMS_OF_ORGANIZATION,
    )


def _session_subscriptions(exchange: Exchange) -> SessionSubscriptions:
    return SessionSubscriptions(
        *(exchange, settings.SECRET_KEY.encode()),
        of_session=settings.SUBSCRIPTIONS_OF_SESSION,
        of_subject=settings.SUBSCRIPTIONS_KEPT_OF_SUBJECT,
        of_organization=settings.SUBSCRIPTIONS_KEPT_OF_ORGANIZATION,
    )


def _session_states(store: CoordinationStore, exchange: Exchange) -> SessionStates:
    return SessionStates(
        *(store, exchange, settings.SECRET_KEY.encode()),
        of_subject=settings.SESSION_CHANGES,
        of_organization=settings.SESSION_CHANGES_OF_ORGANIZATION,
    )


def _question_desk(exchange: Exchange) -> QuestionDesk:
    return QuestionDesk(
        exchange,
        settings.SECRET_KEY.encode(),
        of_vendor=settings.OPEN_QUESTIONS_OF_VENDOR,
        of_organization=settings.OPEN_QUESTIONS_OF_ORGANIZATION,
        of_subject=settings.OPEN_QUESTIONS_OF_SUBJECT,
    )


def _stored_lists(blobs: BlobStore | None) -> StoredLists | None:
    if blobs is None:
        return None
    ttl_s = int(settings.TOOL_LIST_LONGEST_S)
    return StoredLists(blobs, settings.SECRET_KEY.encode(), ttl_s=ttl_s, now_s=lambda: clock.now().timestamp())
