"""The tools of one vendor under one credential: fetched on first use, kept, and refreshed in the background."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import structlog
from django.conf import settings
from msgspec import Raw

from gateway.catalog.tool_config import ToolConfig
from gateway.catalog.vendor import Vendor
from gateway.lib.background_tasks import BackgroundTasks
from proxy.outcomes import VendorFault
from proxy.protocol import replies
from proxy.single_flight import SingleFlight
from proxy.vendors import errors, fair_scheduler
from proxy.vendors.destination import Destination, PoolKey
from proxy.vendors.pool import SessionPool
from proxy.vendors.stored_lists import StoredList, StoredLists
from proxy.vendors.tool_list import ReceivedList, ToolList, read_list
from proxy.vendors.tool_list_cache import ToolIndex, ToolListCache
from proxy.vendors.tool_pages import fetch_pages

log = structlog.get_logger(__name__)
REFETCH_AFTER_S = 5.0  # bounds the fetches for unknown tools and for list_changed
NEWER_S = 1.0  # two clocks date one fetch differently; less than this is the same one
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
        max_indexes: int,
        max_list_bytes: int,
        longest_s: float,
        on_fetched: Callable[[PoolKey, ReceivedList], None] | None = None,
        stored: StoredLists | None = None,
    ) -> None:
        """`on_fetched` gets each list that a vendor sent, and must return at once.

        `longest_s`: until a credential's own list is fetched again, although other credentials have confirmed it.
        """
        self._pool = pool
        self._on_fetched = on_fetched
        self._tool_config = tool_config
        self._ttl_s = ttl_s
        self._max_pages = max_pages
        self._indexes = ToolListCache(max_indexes=max_indexes, max_list_bytes=max_list_bytes)
        self._fetching: SingleFlight[PoolKey, ToolIndex] = SingleFlight()
        self._finding: SingleFlight[PoolKey, ToolIndex | None] = SingleFlight()
        self._longest_s = longest_s
        self._stored = stored
        self._storing = BackgroundTasks()
        self._refreshing = BackgroundTasks()
        self._in_refresh: set[bytes] = set()  # digests of keys, and of lists that one credential confirms for others
        self.on_fetched_list: Callable[[PoolKey], None] | None = None  # called for each list that is new here
        self.on_announced: Callable[[PoolKey], None] | None = None  # called for each change that a vendor announces
        self._under_way: dict[PoolKey, bool] = {}  # being fetched; True if the vendor announced a change since
        pool.on_tools_changed = self._on_tools_changed

    async def index(self, vendor: Vendor, destination: Destination, *, deadline: float) -> ToolIndex:
        """The vendor's tools, from memory if known. Raises: VendorProblem if they are not and fetching fails."""
        known = self._indexes.get(destination.key)
        if known is None and self._stored_of(destination) is not None:
            known = await self._find(vendor, destination, deadline)
        if known is None:
            return await self._fetched(vendor, destination, deadline)
        now_s = asyncio.get_running_loop().time()
        if known.is_outdated and known.failure is None and now_s - known.fetched_s >= REFETCH_AFTER_S:
            return await self._newest(vendor, destination, known, deadline=min(deadline, now_s + CHANGE_WAIT_S))
        if (
            now_s >= known.retry_s
            and (known.failure is not None or now_s - known.fetched_s > self._ttl_s)
            and not self._is_confirmed(destination, known, now_s)
        ):
            self._refresh_later(vendor, destination, known, now_s)
        return known

    def known(self, destination: Destination) -> ToolIndex | None:
        """The vendor's tools, if this process knows them."""
        return self._indexes.peek(destination.key)

    async def aclose(self) -> None:
        """Wait until fetched lists are stored."""
        await self._storing.settled()

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

    def _is_confirmed(self, destination: Destination, known: ToolIndex, now_s: float) -> bool:
        """Whether the vendor has shown the same list to another credential lately, and this one is not too old."""
        confirmed_s = self._indexes.confirmed_s(known.content.digest)
        return now_s - confirmed_s <= self._ttl_s and self._may_be_confirmed(destination, known, now_s)

    def _may_be_confirmed(self, destination: Destination, known: ToolIndex, now_s: float) -> bool:
        # An organization's own address is asked for each of its credentials: no other one speaks for it.
        if known.failure is not None or not destination.fixed_address:
            return False
        return now_s - known.fetched_s <= self._longest_s * _share_of(destination.key)

    def _refresh_later(self, vendor: Vendor, destination: Destination, known: ToolIndex, now_s: float) -> None:
        marks = {destination.key.digest}
        if self._may_be_confirmed(destination, known, now_s):  # one credential of all with this list is enough
            marks.add(known.content.digest)
        if destination.key in self._under_way or marks & self._in_refresh:
            return
        self._in_refresh |= marks
        self._refreshing.start(self._refresh(vendor, destination, marks))

    async def _refresh(self, vendor: Vendor, destination: Destination, marks: set[bytes]) -> None:
        try:
            stored = self._stored_of(destination)
            if stored is None:
                await self._fetching.run(destination.key, lambda: self._attempt(vendor, destination))
            elif not await self._take_over(stored, vendor, destination):
                await self._lead(stored, vendor, destination)
        except errors.VendorProblem as problem:
            log.info("tool list not refreshed", vendor=vendor.slug, fault=str(problem))
        finally:
            self._in_refresh -= marks

    # --- lists of other processes -------------------------------------------------------------------------------------

    async def _find(self, vendor: Vendor, destination: Destination, deadline: float) -> ToolIndex | None:
        """The list that another process fetched, however old; None if there is none or it does not come in time."""
        try:
            async with asyncio.timeout_at(deadline):
                return await self._finding.run(destination.key, lambda: self._from_store(vendor, destination))
        except TimeoutError:
            return None

    async def _from_store(self, vendor: Vendor, destination: Destination) -> ToolIndex | None:
        """The stored list, if it is newer than the known one. It keeps its age."""
        key, stored = destination.key, self._stored_of(destination)
        found = None if stored is None else await stored.find(key)
        if stored is None or found is None:
            return None
        fetched_s, known = asyncio.get_running_loop().time() - found.age_s, self._indexes.peek(key)
        if known is not None and fetched_s - known.fetched_s < NEWER_S:
            return None
        content = self._indexes.content(found.digest) or await self._stored_content(stored, vendor, key, found)
        if content is None:
            return None
        is_outdated = known is not None and known.is_outdated
        return self._put(key, ToolIndex(content, fetched_s, is_outdated))

    async def _stored_content(
        self, stored: StoredLists, vendor: Vendor, key: PoolKey, found: StoredList
    ) -> ToolList | None:
        received = await stored.body(vendor, key, found)
        if received is None:
            return None
        try:
            work = partial(self._parse, vendor, received)
            return (await fair_scheduler.run_small_inline(key.org_id, work, received.size_bytes))[0]
        except replies.BadVendorReply as fault:
            log.warning("stored tool list not read", vendor=vendor.slug, fault=fault.reason)
            return None

    def _stored_of(self, destination: Destination) -> StoredLists | None:
        # An organization's own server could fill the store with lists that no other organization has.
        return self._stored if destination.fixed_address else None

    async def _take_over(self, stored: StoredLists, vendor: Vendor, destination: Destination) -> bool:
        """Whether another process has asked the vendor lately, and so this one need not."""
        found = await self._from_store(vendor, destination)
        now_s = asyncio.get_running_loop().time()
        if found is not None and now_s - found.fetched_s <= self._ttl_s:
            return True
        known = self._indexes.peek(destination.key)
        if known is None:
            return False
        seen_ago_s = await stored.seen_ago_s(known.content.digest)
        if seen_ago_s is not None:
            self._indexes.confirm(known.content.digest, now_s - seen_ago_s)
        return self._is_confirmed(destination, known, now_s)

    async def _lead(self, stored: StoredLists, vendor: Vendor, destination: Destination) -> None:
        """Ask the vendor, unless another process does so at the moment. Raises: VendorProblem."""
        key = destination.key
        if await stored.claim(key, int(RETRY_AFTER_S)):
            await self._fetching.run(key, lambda: self._attempt(vendor, destination))
            return
        known = self._indexes.peek(key)
        if known is not None:
            self._indexes.replace(key, replace(known, retry_s=asyncio.get_running_loop().time() + RETRY_AFTER_S))

    # --- the vendor ---------------------------------------------------------------------------------------------------

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
        self.mark_outdated(key)
        if self.on_announced is not None:
            self.on_announced(key)

    def mark_outdated(self, key: PoolKey) -> None:
        """The next request fetches the list."""
        known = self._indexes.peek(key)
        if known is not None and not known.is_outdated:
            self._indexes.replace(key, replace(known, is_outdated=True))
        if key in self._under_way:  # the list in flight may be the old one
            self._under_way[key] = True

    def _put(self, key: PoolKey, index: ToolIndex) -> ToolIndex:
        """Keep a list that is new here, and tell of it."""
        kept = self._indexes.put(key, index)
        if self.on_fetched_list is not None:
            self.on_fetched_list(key)
        return kept

    async def _fetch(self, vendor: Vendor, destination: Destination) -> ToolIndex:
        key, deadline = destination.key, asyncio.get_running_loop().time() + vendor.timeout_seconds
        listed, size_bytes = await fetch_pages(self._pool, destination, deadline, self._max_pages)
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
        index = self._put(key, ToolIndex(content, fetched_s, is_outdated))
        if destination.fixed_address:
            self._indexes.confirm(content.digest, fetched_s)
        if self._on_fetched is not None:
            self._on_fetched(key, received)
        if (stored := self._stored_of(destination)) is not None:
            self._storing.start(stored.put(key, received))
        return index

    def _read(self, vendor: Vendor, listed: list[Raw], size_bytes: int) -> tuple[ReceivedList, ToolList, list[str]]:
        """The list as received and as parsed, and its problems if it was not known. Raises: BadVendorReply."""
        received = ReceivedList.of(vendor, listed, size_bytes)
        return received, *self._parse(vendor, received)

    def _parse(self, vendor: Vendor, received: ReceivedList) -> tuple[ToolList, list[str]]:
        """The kept copy of an equal list, or a new one and its problems. Raises: BadVendorReply."""
        known = self._indexes.content(received.digest)
        return (known, []) if known is not None else read_list(vendor, received, self._tool_config)


def configured_directory(
    pool: SessionPool, on_fetched: Callable[[PoolKey, ReceivedList], None], stored: StoredLists | None = None
) -> ToolDirectory:
    """A directory under the bounds of the settings."""
    return ToolDirectory(
        pool,
        settings.VENDOR_TOOL_CONFIG,
        ttl_s=settings.TOOL_LIST_TTL_S,
        max_pages=settings.TOOL_LIST_MAX_PAGES,
        max_indexes=settings.TOOL_INDEXES,
        max_list_bytes=settings.TOOL_LIST_BYTES,
        longest_s=settings.TOOL_LIST_LONGEST_S,
        on_fetched=on_fetched,
        stored=stored,
    )


def _share_of(key: PoolKey) -> float:
    """Between 0.75 and 1: credentials that were fetched together are not all fetched again together."""
    return 0.75 + key.digest[0] / 1020
