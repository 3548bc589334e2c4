"""Pure: a vendor's resources, templates or prompts under one credential, as parsed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from msgspec import Raw

from gateway.catalog.vendor import Vendor
from proxy.outcomes import VendorFault
from proxy.protocol import item_definitions
from proxy.protocol.item_definitions import ItemName
from proxy.protocol.item_kinds import ItemKind

# Memory beside the two bodies: of a list, and of the two names of an entry with their table entries.
LIST_BYTES, NAME_BYTES = 1_500, 500


@dataclass(frozen=True, slots=True)
class ItemList:
    """Bodies: the definitions joined by commas, with the vendor's own names and with those of the unified endpoint."""

    kind: ItemKind
    names: tuple[ItemName, ...]
    own_body: bytes
    exposed_body: bytes
    by_own: Mapping[str, ItemName] = field(repr=False)
    by_exposed: Mapping[str, ItemName] = field(repr=False)

    @property
    def kept_bytes(self) -> int:
        return LIST_BYTES + len(self.own_body) + len(self.exposed_body) + NAME_BYTES * len(self.names)


@dataclass(frozen=True, slots=True)
class ItemIndex:
    """A list and its age."""

    content: ItemList
    fetched_s: float  # loop time
    is_outdated: bool = False  # the vendor has announced a change since
    failure: VendorFault | None = None  # of the last attempt to refresh
    retry_s: float = 0.0  # loop time of the next attempt after a failure


def read_list(kind: ItemKind, vendor: Vendor, listed: Sequence[Raw]) -> tuple[ItemList, int]:
    """The list, and how many entries are left out; thread-safe. Raises: BadVendorReply."""
    accepted = item_definitions.accept(kind, vendor.slug, vendor.tool_prefix, listed)
    names = accepted.names
    content = ItemList(
        kind,
        names,
        accepted.own_body,
        accepted.exposed_body,
        {name.own: name for name in names},
        {name.exposed: name for name in names},
    )
    return content, accepted.left_out
