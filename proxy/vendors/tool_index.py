"""The tools of one vendor under one credential: fetched on first use, kept, and refreshed in the background."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import structlog
from msgspec import Raw

from gateway.catalog.tool_config import ToolConfig
from gateway.catalog.vendor import Vendor
from gateway.lib.background_tasks import BackgroundTasks
from proxy.outcomes import VendorFault
from proxy.protocol import replies, tool_definitions
from proxy.single_flight import SingleFlight
from proxy.vendors import errors, fair_scheduler
from proxy.vendors.destination import Destination, PoolKey
from proxy.vendors.pool import SessionPool
from proxy.vendors.send import send_request
from proxy.vendors.tool_list import ReceivedList, ToolList, read_list
from proxy.vendors.tool_list_cache import ToolIndex, ToolListCache

log = structlog.get_logger(__name__)
MAX_INDEXES = 50_000  # default of the setting
MAX_LISTS_BYTES = 64 * 1024 * 1024  # default of the setting
MAX_LIST_BYTES = 4 * 1024 * 1024  # of all pages of one list, which are held together
REFETCH_AFTER_S = 5.0  # bounds the fetches for unknown tools and for list_changed
RETRY_AFTER_S = 10.0  # between attempts while fetching fails; the old list is served
CHANGE_WAIT_S = 5.0  # for a changed list; then the old one is served


class ToolDirectory:
    """Tool indexes by pool key. One event loop. An expired index is served while it is refreshed.

    After list_changed the index is refreshed before use. If refreshing fails, the old one is served with its `failure`.
    """

    def __init__(
        self,
        pool: SessionPool,
        tool_config: ToolConfig,
        *,
        ttl_s: float,
        max_pages: int,
        max_indexes: int = MAX_INDEXES,
        max_list_bytes: int = MAX_LISTS_BYTES,
        on_fetched: Callable[[PoolKey, ReceivedList], None] | None = None,
    ) -> None:
        """`on_fetched` gets each list, and must return at once."""
        self._pool = pool
        self._on_fetched = on_fetched
        self._tool_config = tool_config
        self._ttl_s = ttl_s
        self._max_pages = max_pages
        self._indexes = ToolListCache(max_indexes=max_indexes, max_list_bytes=max_list_bytes)
        self._fetching: SingleFlight[PoolKey, ToolIndex] = SingleFlight()
        self._refreshing = BackgroundTasks()
        self._under_way: dict[PoolKey, bool] = {}  # being fetched; True if the vendor announced a change since
        pool.on_tools_changed = self._on_tools_changed

    async def index(self, vendor: Vendor, destination: Destination, *, deadline: float) -> ToolIndex:
        """The vendor's tools, from memory if known. Raises: VendorProblem if they are not and fetching fails."""
        known = self._indexes.get(destination.key)
        if known is None:
            return await self._fetched(vendor, destination, deadline)
        now_s = asyncio.get_running_loop().time()
        if known.is_outdated and known.failure is None and now_s - known.fetched_s >= REFETCH_AFTER_S:
            return await self._newest(vendor, destination, known, deadline=min(deadline, now_s + CHANGE_WAIT_S))
        if now_s >= known.retry_s and (known.failure is not None or now_s - known.fetched_s > self._ttl_s):
            self._refresh_later(vendor, destination)
        return known

    async def fresh_index(self, vendor: Vendor, destination: Destination, *, deadline: float) -> ToolIndex:
        """The vendor's tools, fetched unless that was done in the last REFETCH_AFTER_S. Raises: VendorProblem."""
        known = self._indexes.peek(destination.key)
        if known is not None and asyncio.get_running_loop().time() - known.fetched_s < REFETCH_AFTER_S:
            return known
        return await self._fetched(vendor, destination, deadline)

    async def _fetched(self, vendor: Vendor, destination: Destination, deadline: float) -> ToolIndex:
        try:
            async with asyncio.timeout_at(deadline):
                return await self._fetching.run(destination.key, lambda: self._attempt(vendor, destination))
        except TimeoutError:
            raise errors.timeout() from None

    async def _newest(
        self, vendor: Vendor, destination: Destination, known: ToolIndex, *, deadline: float
    ) -> ToolIndex:
        """The refreshed list, or the known one if that fails or takes too long."""
        try:
            return await self._fetched(vendor, destination, deadline)
        except errors.VendorProblem as problem:
            if destination.key in self._under_way:  # still running: the next call need not wait too
                self._record_failure(destination.key, problem.fault)
        return self._indexes.peek(destination.key) or known

    def _refresh_later(self, vendor: Vendor, destination: Destination) -> None:
        if destination.key in self._under_way:
            return
        self._refreshing.start(self._refresh(vendor, destination))

    async def _refresh(self, vendor: Vendor, destination: Destination) -> None:
        try:
            await self._fetching.run(destination.key, lambda: self._attempt(vendor, destination))
        except errors.VendorProblem as problem:
            log.info("tool list not refreshed", vendor=vendor.slug, fault=str(problem))

    async def _attempt(self, vendor: Vendor, destination: Destination) -> ToolIndex:
        key = destination.key
        self._under_way[key] = False
        try:
            return await self._fetch(vendor, destination)
        except errors.VendorProblem as problem:
            self._record_failure(key, problem.fault)
            raise
        finally:
            del self._under_way[key]

    def _record_failure(self, key: PoolKey, fault: VendorFault) -> None:
        known = self._indexes.peek(key)
        if known is not None:
            retry_s = asyncio.get_running_loop().time() + RETRY_AFTER_S
            self._indexes.replace(key, replace(known, failure=fault, retry_s=retry_s))

    def _on_tools_changed(self, key: PoolKey) -> None:
        """The vendor may announce changes at any rate. Spec: protocol.md A.5"""
        known = self._indexes.peek(key)
        if known is not None and not known.is_outdated:
            self._indexes.replace(key, replace(known, is_outdated=True))
        if key in self._under_way:  # the list in flight may be the old one
            self._under_way[key] = True

    async def _fetch(self, vendor: Vendor, destination: Destination) -> ToolIndex:
        key, deadline = destination.key, asyncio.get_running_loop().time() + vendor.timeout_seconds
        listed, size_bytes = await self._list(vendor, destination, deadline)
        work = partial(self._read, vendor, listed, size_bytes)
        try:
            received, content, problems = await fair_scheduler.run_small_inline(key.org_id, work, size_bytes, deadline)
        except replies.BadVendorReply as fault:
            raise errors.bad_response(fault.reason) from fault
        except TimeoutError as fault:
            raise errors.timeout(errors.Evidence.RESPONDED) from fault
        if problems:
            log.info("tool definitions left out", vendor=vendor.slug, problems=problems[:5])
        fetched_s, is_outdated = asyncio.get_running_loop().time(), self._under_way[key]
        index = self._indexes.put(key, ToolIndex(content, fetched_s, is_outdated))
        if self._on_fetched is not None:
            self._on_fetched(key, received)
        return index

    def _read(self, vendor: Vendor, listed: list[Raw], size_bytes: int) -> tuple[ReceivedList, ToolList, list[str]]:
        """The list as received and as parsed, and its problems if it was not known. Raises: BadVendorReply."""
        received = ReceivedList.of(vendor, listed, size_bytes)
        known = self._indexes.content(received.digest)
        if known is not None:
            return received, known, []
        return received, *read_list(vendor, received, self._tool_config)

    async def _list(self, vendor: Vendor, destination: Destination, deadline: float) -> tuple[list[Raw], int]:
        """The unparsed tools of all pages, and their bytes."""
        listed: list[Raw] = []
        size = 0
        seen: set[str] = set()
        cursor: str | None = None
        for _ in range(self._max_pages):
            params = {} if cursor is None else {"cursor": cursor}
            answer = await send_request(self._pool, destination, "tools/list", params, deadline=deadline)
            if isinstance(answer, replies.RpcError):
                raise errors.bad_response("it refused to list its tools")
            size += len(answer.raw_result)
            if size > MAX_LIST_BYTES:
                raise errors.bad_response("its tool list is too large")
            page = _page(answer)
            listed.extend(page.tools)
            if page.next_cursor is None or len(listed) > tool_definitions.MAX_TOOLS:
                return listed, size
            if page.next_cursor in seen:
                raise errors.bad_response("its tool list never ends")
            seen.add(page.next_cursor)
            cursor = page.next_cursor
        raise errors.bad_response("its tool list has too many pages")


def _page(answer: replies.VendorResult) -> replies.RawToolsPage:
    try:
        return replies.raw_tools_page(answer.raw_result)
    except replies.BadVendorReply as fault:
        raise errors.bad_response(fault.reason) from fault
