"""The tools of one vendor under one credential: fetched on first use, kept, and refreshed in the background."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import msgspec
import structlog
from msgspec import Raw

from gateway.catalog.tool_config import ToolConfig, ToolPolicy
from gateway.catalog.vendor import Vendor
from gateway.lib.background_tasks import BackgroundTasks
from gateway.lib.fair_share_cache import FairShareCache
from proxy.outcomes import VendorFault
from proxy.protocol import replies, tool_definitions
from proxy.protocol.tool_names import ExposedTool, ExposedTools
from proxy.single_flight import SingleFlight
from proxy.vendors import errors, fair_scheduler
from proxy.vendors.destination import Destination, PoolKey
from proxy.vendors.pool import SessionPool
from proxy.vendors.send import send_request

log = structlog.get_logger(__name__)
MAX_INDEXES = 2_000  # over all organizations
MAX_INDEX_BYTES = 64 * 1024 * 1024  # of all lists as received; parsed, they take several times as much
MAX_LIST_BYTES = 4 * 1024 * 1024  # of all pages of one list, which are held together
REFETCH_AFTER_S = 5.0  # bounds the fetches for unknown tools and for list_changed
RETRY_AFTER_S = 10.0  # between attempts while fetching fails; the old list is served
CHANGE_WAIT_S = 5.0  # for a changed list; then the old one is served


@dataclass(frozen=True, slots=True)
class ToolIndex:
    """The parsed tool list of one vendor."""

    tools: ExposedTools
    definitions: Mapping[str, dict[str, Any]]  # by the vendor's own name, without hidden characters
    encoded: Mapping[str, bytes]  # by exposed name; JSON, to be joined into a list
    policies: Mapping[str, ToolPolicy]  # by the vendor's own name
    fetched_s: float
    size_bytes: int = 0  # of the list as received
    is_outdated: bool = False  # the vendor has announced a change since
    failure: VendorFault | None = None  # of the last attempt to refresh
    retry_s: float = 0.0  # loop time of the next attempt after a failure
    as_sent: Mapping[str, dict[str, Any]] = field(default_factory=dict)  # the vendor's unchanged definitions

    def policy(self, tool: ExposedTool) -> ToolPolicy:
        """Spec: D103"""
        return self.policies[tool.vendor_name]


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
        on_fetched: Callable[[PoolKey, Mapping[str, tool_definitions.Definition], int], None] | None = None,
    ) -> None:
        """`on_fetched` gets each list and its bytes, and must return at once."""
        self._pool = pool
        self._on_fetched = on_fetched
        self._tool_config = tool_config
        self._ttl_s = ttl_s
        self._max_pages = max_pages
        self._indexes: FairShareCache[PoolKey, ToolIndex] = FairShareCache(
            max_bytes=MAX_INDEX_BYTES, max_entries=MAX_INDEXES
        )
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
        deadline = asyncio.get_running_loop().time() + vendor.timeout_seconds
        listed, size_bytes = await self._list(vendor, destination, deadline)
        work = partial(_read, vendor, listed, self._tool_config)
        try:
            index, problems = await fair_scheduler.run_small_inline(destination.key.org_id, work, size_bytes, deadline)
        except replies.BadVendorReply as fault:
            raise errors.bad_response(fault.reason) from fault
        except TimeoutError as fault:
            raise errors.timeout(errors.Evidence.RESPONDED) from fault
        if problems:
            log.info("tool definitions left out", vendor=vendor.slug, problems=problems[:5])
        fetched_s, is_outdated = asyncio.get_running_loop().time(), self._under_way[destination.key]
        index = replace(index, fetched_s=fetched_s, size_bytes=size_bytes, is_outdated=is_outdated)
        self._indexes.put(destination.key, index, owner=destination.key.org_id, size_bytes=size_bytes)
        if self._on_fetched is not None:
            self._on_fetched(destination.key, index.as_sent, size_bytes)
        return index

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


def _read(vendor: Vendor, listed: list[Raw], tool_config: ToolConfig) -> tuple[ToolIndex, list[str]]:
    """The index of a list and its problems; thread-safe. Raises: BadVendorReply."""
    accepted = tool_definitions.accept_definitions(replies.tools_of(listed))
    index = build_index(vendor, accepted.for_callers, tool_config, 0.0)
    return replace(index, as_sent={each["name"]: each for each in accepted.definitions}), accepted.problems


def build_index(
    vendor: Vendor, definitions: list[dict[str, Any]], tool_config: ToolConfig, fetched_s: float
) -> ToolIndex:
    tools = ExposedTools(vendor.tool_prefix, [definition["name"] for definition in definitions])
    by_name = {definition["name"]: definition for definition in definitions}
    encoded = {
        tool.exposed_name: msgspec.json.encode(
            tool_definitions.exposed_definition(by_name[tool.vendor_name], tool.exposed_name)
        )
        for tool in tools.tools
    }
    policies = {name: tool_config.policy(vendor, name, each) for name, each in by_name.items()}
    return ToolIndex(tools, by_name, encoded, policies, fetched_s)
