"""The tool indexes of all credentials of a process; equal lists are kept once. docs/decisions/0051"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from gateway.lib.fair_share_cache import FairShareCache
from proxy.outcomes import VendorFault
from proxy.vendors.destination import PoolKey
from proxy.vendors.tool_list import ToolList


@dataclass(frozen=True, slots=True)
class ToolIndex:
    """A vendor's tool list under one credential: the list, which other credentials may share, and its age."""

    content: ToolList
    fetched_s: float  # loop time
    is_outdated: bool = False  # the vendor has announced a change since
    failure: VendorFault | None = None  # of the last attempt to refresh
    retry_s: float = 0.0  # loop time of the next attempt after a failure


@dataclass(slots=True, eq=False)
class _Shared:
    content: ToolList
    holders: int = 0  # indexes that point to it
    confirmed_s: float = -math.inf  # loop time at which the vendor last showed it to a credential


class _SharedLists:
    """Distinct lists by digest, as long as an index points to them."""

    def __init__(self) -> None:
        self.by_digest: dict[bytes, _Shared] = {}
        self.size_bytes = 0

    def hold(self, content: ToolList) -> ToolList:
        """Count one more index, and return the list that it shall point to."""
        shared = self.by_digest.get(content.digest)
        if shared is None:
            shared = self.by_digest[content.digest] = _Shared(content)
            self.size_bytes += content.kept_bytes
        shared.holders += 1
        return shared.content

    def release(self, index: ToolIndex) -> None:
        shared = self.by_digest[index.content.digest]
        shared.holders -= 1
        if not shared.holders:
            del self.by_digest[index.content.digest]
            self.size_bytes -= index.content.kept_bytes

    def weigh(self, index: ToolIndex) -> int:
        return index.content.kept_bytes // self.by_digest[index.content.digest].holders


class ToolListCache:
    """One event loop. Past a bound, the organization that holds most loses the index that it used longest ago.

    An index counts with the list's bytes divided by the indexes that point to the list. A list that no index points to
    is dropped.
    """

    def __init__(self, *, max_indexes: int, max_list_bytes: int) -> None:
        self._max_list_bytes = max_list_bytes
        self._lists = _SharedLists()
        self._indexes: FairShareCache[PoolKey, ToolIndex] = FairShareCache(
            max_entries=max_indexes, on_drop=self._lists.release, weigh=self._lists.weigh
        )

    def __len__(self) -> int:
        return len(self._indexes)

    def __iter__(self) -> Iterator[PoolKey]:
        return iter(self._indexes)

    @property
    def distinct(self) -> int:
        return len(self._lists.by_digest)

    @property
    def list_bytes(self) -> int:
        """Memory of all distinct lists."""
        return self._lists.size_bytes

    def content(self, digest: bytes) -> ToolList | None:
        """A kept list by its digest; from any thread."""
        shared = self._lists.by_digest.get(digest)
        return None if shared is None else shared.content

    def confirm(self, digest: bytes, at_s: float) -> None:
        """The vendor showed this list to a credential at that time."""
        shared = self._lists.by_digest.get(digest)
        if shared is not None:
            shared.confirmed_s = max(shared.confirmed_s, at_s)

    def confirmed_s(self, digest: bytes) -> float:
        shared = self._lists.by_digest.get(digest)
        return -math.inf if shared is None else shared.confirmed_s

    def get(self, key: PoolKey) -> ToolIndex | None:
        """Counts as a use."""
        return self._indexes.get(key)

    def peek(self, key: PoolKey) -> ToolIndex | None:
        return self._indexes.peek(key)

    def put(self, key: PoolKey, index: ToolIndex) -> ToolIndex:
        """Keep the index, and return it with the shared copy of its list. It may be evicted at once."""
        # Before the key's old index is dropped, which may point to the same list.
        index = replace(index, content=self._lists.hold(index.content))
        self._indexes.put(key, index, owner=key.org_id, size_bytes=self._lists.weigh(index))
        while self.list_bytes > self._max_list_bytes:
            self._indexes.evict()
        return index

    def replace(self, key: PoolKey, index: ToolIndex) -> None:
        """The key's index with another age or failure."""
        self._indexes.replace(key, index)
