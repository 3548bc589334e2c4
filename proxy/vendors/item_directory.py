"""Vendors' resources, templates and prompts, and their declarations: kept, and refreshed in the background.

As the tool directory, for one process: these lists are asked for less often, and are in no other process's way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeVar

import structlog
from django.conf import settings
from msgspec import Raw

from gateway.catalog.vendor import Vendor
from gateway.lib.background_tasks import BackgroundTasks
from gateway.lib.fair_share_cache import FairShareCache
from proxy.protocol import item_definitions, replies
from proxy.protocol.item_kinds import Capability, ItemKind
from proxy.protocol.jsonrpc import METHOD_NOT_FOUND
from proxy.single_flight import SingleFlight
from proxy.vendors import errors, fair_scheduler
from proxy.vendors.destination import Destination, PoolKey
from proxy.vendors.item_list import ItemIndex, ItemList, read_list
from proxy.vendors.pool import SessionPool
from proxy.vendors.rpc_request import RpcRequest
from proxy.vendors.send import open_session, send_request
from proxy.vendors.tool_directory import REFETCH_AFTER_S, RETRY_AFTER_S
from proxy.vendors.tool_list import MAX_LIST_BYTES

log = structlog.get_logger(__name__)
Key = tuple[PoolKey, ItemKind]
T = TypeVar("T")
_RESOURCES = Capability.RESOURCES.value


class ItemDirectory:
    """One event loop. Past a bound, the organization that holds most loses what it used longest ago."""

    def __init__(self, pool: SessionPool, *, ttl_s: float, max_pages: int, max_bytes: int, max_known: int) -> None:
        """`max_known`: credentials whose vendor's declarations are remembered."""
        self._pool = pool
        self._ttl_s, self._max_pages = ttl_s, max_pages
        self._declared: FairShareCache[PoolKey, frozenset[str]] = FairShareCache(max_entries=max_known)
        self._indexes: FairShareCache[Key, ItemIndex] = FairShareCache(max_bytes=max_bytes)
        self._fetching: SingleFlight[Key, ItemIndex] = SingleFlight()
        self._refreshing = BackgroundTasks()
        self.on_fetched_list: Callable[[PoolKey], None] | None = None  # called for each list that is new here
        # Called for each change that a vendor announces.
        self.on_announced: Callable[[PoolKey, Capability], None] | None = None
        pool.on_items_changed, pool.on_handshake = self._on_items_changed, self._on_handshake

    async def aclose(self) -> None:
        for task in list(self._refreshing):
            task.cancel()
        await self._refreshing.settled()

    async def declared(self, destination: Destination, *, deadline: float) -> frozenset[str]:
        """The capabilities of the vendor's last handshake, which is made if there was none. Raises: VendorProblem."""
        known = self._declared.get(destination.key)
        if known is not None:
            return known
        session = await open_session(self._pool, destination, deadline=deadline)
        self._on_handshake(destination.key, session.capabilities)  # a session that was there already
        return session.capabilities

    def may_have_resources(self, key: PoolKey) -> bool:
        """False if the vendor declared that it has none. Cheaper than a look at the result of a tool."""
        declared = self._declared.peek(key)
        return declared is None or _RESOURCES in declared

    def may_have(self, capability: Capability, key: PoolKey) -> bool:
        """False if the vendor declared that it has none of them."""
        declared = self._declared.peek(key)
        return declared is None or capability.value in declared

    def known(self, kind: ItemKind, destination: Destination) -> ItemIndex | None:
        """The vendor's list, if this process knows it."""
        return self._indexes.peek((destination.key, kind))

    async def index(self, kind: ItemKind, vendor: Vendor, destination: Destination, *, deadline: float) -> ItemIndex:
        """The vendor's list, from memory if known. Raises: VendorProblem if it is not and fetching fails."""
        key = (destination.key, kind)
        known = self._indexes.get(key)
        if known is None:
            return await self._fetched(kind, vendor, destination, deadline)
        now_s = asyncio.get_running_loop().time()
        if known.is_outdated and known.failure is None and now_s - known.fetched_s >= REFETCH_AFTER_S:
            return await self._newest(kind, vendor, destination, known, deadline)
        is_due = known.failure is not None or now_s - known.fetched_s > self._ttl_s
        if is_due and now_s >= known.retry_s:
            # Not again at once by the next request.
            self._indexes.replace(key, replace(known, retry_s=now_s + RETRY_AFTER_S))
            self._refreshing.start(self._refresh(kind, vendor, destination))
        return known

    async def fresh_index(
        self, kind: ItemKind, vendor: Vendor, destination: Destination, *, deadline: float
    ) -> ItemIndex:
        """The vendor's list, fetched unless that was done in the last REFETCH_AFTER_S. Raises: VendorProblem."""
        known = self._indexes.peek((destination.key, kind))
        if known is not None and asyncio.get_running_loop().time() - known.fetched_s < REFETCH_AFTER_S:
            return known
        return await self._fetched(kind, vendor, destination, deadline)

    def _on_handshake(self, key: PoolKey, declared: frozenset[str]) -> None:
        if self._declared.peek(key) is not declared:
            self._declared.put(key, declared, owner=key.org_id, size_bytes=0)

    async def _fetched(self, kind: ItemKind, vendor: Vendor, destination: Destination, deadline: float) -> ItemIndex:
        try:
            async with asyncio.timeout_at(deadline):
                key = (destination.key, kind)
                return await self._fetching.run(key, lambda: self._attempt(kind, vendor, destination))
        except TimeoutError:
            raise errors.timeout() from None

    async def _newest(
        self, kind: ItemKind, vendor: Vendor, destination: Destination, known: ItemIndex, deadline: float
    ) -> ItemIndex:
        """The refreshed list, or the known one if that fails."""
        try:
            return await self._fetched(kind, vendor, destination, deadline)
        except errors.VendorProblem:
            return self._indexes.peek((destination.key, kind)) or known

    async def _refresh(self, kind: ItemKind, vendor: Vendor, destination: Destination) -> None:
        try:
            key = (destination.key, kind)
            await self._fetching.run(key, lambda: self._attempt(kind, vendor, destination))
        except errors.VendorProblem as problem:
            log.info("list not refreshed", vendor=vendor.slug, method=kind.method, fault=str(problem))

    async def _attempt(self, kind: ItemKind, vendor: Vendor, destination: Destination) -> ItemIndex:
        key = (destination.key, kind)
        try:
            content = await self._fetch(kind, vendor, destination)
        except errors.VendorProblem as problem:
            known = self._indexes.peek(key)
            if known is not None:
                retry_s = asyncio.get_running_loop().time() + RETRY_AFTER_S
                self._indexes.replace(key, replace(known, failure=problem.fault, retry_s=retry_s))
            raise
        index = ItemIndex(content, asyncio.get_running_loop().time())
        self._indexes.put(key, index, owner=destination.key.org_id, size_bytes=content.kept_bytes)
        if self.on_fetched_list is not None:
            self.on_fetched_list(destination.key)
        return index

    async def _fetch(self, kind: ItemKind, vendor: Vendor, destination: Destination) -> ItemList:
        deadline = asyncio.get_running_loop().time() + vendor.timeout_seconds
        listed, size_bytes = await self._pages(kind, destination, deadline)
        content, left_out = await self._read(
            destination, partial(read_list, kind, vendor, listed), size_bytes, deadline
        )
        if left_out:
            log.info("entries of a list left out", vendor=vendor.slug, method=kind.method, left_out=left_out)
        return content

    async def _read(self, destination: Destination, work: Callable[[], T], size_bytes: int, deadline: float) -> T:
        """Beside the event loop, if it takes long. Raises: VendorProblem."""
        try:
            return await fair_scheduler.run_small_inline(destination.key.org_id, work, size_bytes, deadline)
        except replies.BadVendorReply as fault:
            raise errors.bad_response(fault.reason) from fault
        except TimeoutError as fault:
            raise errors.timeout(errors.Evidence.RESPONDED) from fault

    async def _pages(self, kind: ItemKind, destination: Destination, deadline: float) -> tuple[list[Raw], int]:
        """The unparsed entries of all pages, and their bytes. Raises: VendorProblem."""
        listed: list[Raw] = []
        size = 0
        cursor: str | None = None
        seen: set[str] = set()
        for _ in range(self._max_pages):
            params: dict[str, str] = {} if cursor is None else {"cursor": cursor}
            answer = await send_request(self._pool, destination, RpcRequest(kind.method, params, deadline))
            if isinstance(answer, replies.RpcError):
                if answer.code == METHOD_NOT_FOUND:  # one capability stands for resources and templates
                    return listed, size
                raise errors.bad_response(f"it refused to list its {kind.member}")
            size += len(answer.raw_result)
            if size > MAX_LIST_BYTES:
                raise errors.bad_response(f"its list of {kind.member} is too large")
            page, cursor = await self._read(
                destination,
                partial(item_definitions.page_of, kind, answer.raw_result),
                len(answer.raw_result),
                deadline,
            )
            listed.extend(page)
            if cursor is None or len(listed) > item_definitions.MAX_ITEMS[kind]:
                return listed, size
            if cursor in seen:
                raise errors.bad_response(f"its list of {kind.member} never ends")
            seen.add(cursor)
        raise errors.bad_response(f"its list of {kind.member} has too many pages")

    def _on_items_changed(self, key: PoolKey, capability: Capability) -> None:
        """The vendor may announce changes at any rate."""
        self.mark_outdated(key, capability)
        if self.on_announced is not None:
            self.on_announced(key, capability)

    def mark_outdated(self, key: PoolKey, capability: Capability) -> None:
        """The next request fetches the lists."""
        for kind in ItemKind:
            known = self._indexes.peek((key, kind)) if kind.capability is capability else None
            if known is not None and not known.is_outdated:
                self._indexes.replace((key, kind), replace(known, is_outdated=True))


def configured_items(pool: SessionPool) -> ItemDirectory:
    """A directory under the bounds of the settings."""
    return ItemDirectory(
        pool,
        ttl_s=settings.TOOL_LIST_TTL_S,
        max_pages=settings.TOOL_LIST_MAX_PAGES,
        max_bytes=settings.ITEM_LIST_BYTES,
        max_known=settings.TOOL_INDEXES,
    )
