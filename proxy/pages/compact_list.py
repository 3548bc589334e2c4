"""The size of the short tool list beside that of the full one. docs/decisions/0103 · D138"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from django.conf import settings

from proxy.protocol import compact_tools


@dataclass(frozen=True, slots=True)
class ListSizes:
    """Bytes as measured, tokens as estimated from them."""

    full_bytes: int
    compact_bytes: int

    @property
    def full_tokens(self) -> int:
        return self.full_bytes // settings.SAVINGS_BYTES_PER_TOKEN

    @property
    def compact_tokens(self) -> int:
        return self.compact_bytes // settings.SAVINGS_BYTES_PER_TOKEN


def list_sizes(known_bytes: Mapping[str, float], vendors: Collection[str]) -> ListSizes | None:
    """`known_bytes`: of a vendor's tool list, by slug; `vendors`: those that the viewer may use. None: their lists are
    not known, or no longer than the short list."""
    full = int(sum(known_bytes.get(slug, 0) for slug in vendors))
    return ListSizes(full, len(compact_tools.LIST)) if full > len(compact_tools.LIST) else None
