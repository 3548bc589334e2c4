"""The joined definitions of tools/list, built once for equal lists and rights. docs/decisions/0051"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from gateway.lib.fair_share_cache import FairShareCache
from gateway.lib.shared_body import SharedBody
from proxy.vendors.tool_list import ToolList

ENTRY_BYTES = 1024  # estimate of a key and its table entries


@dataclass(frozen=True, slots=True)
class ListPart:
    """One vendor's list as one caller sees it: a list, and all that decides which of its tools are shown."""

    content: ToolList
    rights: Hashable
    other_prefixes: tuple[str, ...]  # of vendors whose tools have names that begin with this vendor's prefix
    is_unified: bool = True  # with the addresses of the unified endpoint

    @property
    def key(self) -> Hashable:
        return self.content.digest, self.rights, self.other_prefixes, self.is_unified or not self.content.own_encoded


class ListBodies:
    """One event loop. Bodies by the keys of their parts; past the bound, the organization that built most loses its
    least recently used one."""

    def __init__(self, *, max_bytes: int) -> None:
        self._kept: FairShareCache[Hashable, SharedBody] = FairShareCache(max_bytes=max_bytes, on_drop=SharedBody.drop)

    def get(self, parts: Sequence[ListPart]) -> SharedBody | None:
        return self._kept.get(_key(parts))

    def put(self, parts: Sequence[ListPart], body: SharedBody, *, owner: Hashable) -> None:
        """The body may be dropped at once."""
        self._kept.put(_key(parts), body, owner=owner, size_bytes=len(body) + ENTRY_BYTES)


def _key(parts: Sequence[ListPart]) -> Hashable:
    return tuple(part.key for part in parts)
