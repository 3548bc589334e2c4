"""Search indexes of tool lists, built once for equal lists. docs/decisions/0103"""

from __future__ import annotations

from collections.abc import Hashable

from gateway.catalog.vendor import Vendor
from gateway.lib.fair_share_cache import FairShareCache
from proxy.protocol.tool_search import SearchIndex
from proxy.vendors.tool_list import ToolList

ENTRY_BYTES = 1024  # estimate of a key and its table entries


class SearchIndexes:
    """One event loop. Past the bound, the organization that built most loses its least recently used one."""

    def __init__(self, *, max_bytes: int) -> None:
        self._kept: FairShareCache[Hashable, SearchIndex] = FairShareCache(max_bytes=max_bytes)

    def get(self, vendor: Vendor, content: ToolList) -> SearchIndex | None:
        return self._kept.get((vendor.name, content.digest))

    def put(self, vendor: Vendor, content: ToolList, index: SearchIndex, *, owner: Hashable) -> None:
        """The index may be dropped at once."""
        size_bytes = index.kept_bytes + ENTRY_BYTES
        self._kept.put((vendor.name, content.digest), index, owner=owner, size_bytes=size_bytes)
