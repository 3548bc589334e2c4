"""The lists that one caller sees, as far as this process knows them, and what has changed of them.

No vendor is asked: a list that is not known here counts as unchanged once it is. docs/decisions/0110
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Set
from dataclasses import dataclass
from enum import Enum

from gateway.catalog.vendor import Vendor
from orgs.allowed_items import ItemType
from proxy.caller import Caller
from proxy.calls.decide import item_limits, tool_rights
from proxy.calls.item_rights import depend_on_tools, may_offer
from proxy.calls.open_destination import usable_vendor
from proxy.outcomes import Denied
from proxy.protocol.item_kinds import Capability, ItemKind
from proxy.runtime import Runtime
from proxy.vendors.destination import Destination


class Listed(Enum):
    """Things that a list of the gateway has: the capability, and the notification of a change."""

    TOOLS = "tools"
    PROMPTS = "prompts"
    RESOURCES = "resources"

    @property
    def notification(self) -> str:
        return f"notifications/{self.value}/list_changed"


_ITEM_KINDS = {
    Listed.PROMPTS: (ItemKind.PROMPT,),
    Listed.RESOURCES: (ItemKind.RESOURCE, ItemKind.TEMPLATE),
}


@dataclass(frozen=True, slots=True)
class SeenList:
    """One vendor's part of a list. `mark`: of its content; None if it is not known here."""

    place: bytes  # digest of the vendor's key
    rights: Hashable
    mark: Hashable = None
    is_outdated: bool = False  # the vendor has announced a change that is not fetched yet


Seen = Mapping[str, SeenList]  # by vendor


def seen(live: Runtime, caller: Caller, vendor: Vendor | None, kinds: Iterable[Listed]) -> dict[Listed, Seen]:
    """Each list at `vendor`, or at all vendors that the caller may use."""
    vendors = [vendor] if vendor else caller.catalog.all()
    places = [(each, usable_vendor(caller, each)) for each in vendors]
    usable = [(each, found[1]) for each, found in places if not isinstance(found, Denied)]
    return {kind: _seen(live, caller, usable, kind) for kind in kinds}


def has_changed(before: Seen, now: Seen, announced: Set[bytes]) -> bool:
    """Whether a caller who knew the lists as they were should ask again. `announced`: places whose vendor said so."""
    return (
        before.keys() != now.keys()
        or any(each.place in announced for each in now.values())
        or any(_has_changed(before[slug], now[slug]) for slug in now)
    )


def _has_changed(before: SeenList, now: SeenList) -> bool:
    if before.rights != now.rights:
        return True
    # Of a list that was outdated the caller was told already.
    return not before.is_outdated and None not in (before.mark, now.mark) and before.mark != now.mark


def _seen(live: Runtime, caller: Caller, usable: list[tuple[Vendor, Destination]], kind: Listed) -> Seen:
    if kind is Listed.TOOLS:
        return {vendor.slug: _tools(live, caller, vendor, place) for vendor, place in usable}
    item_type = ItemType(kind.value)
    return {
        vendor.slug: _items(live, caller, vendor, place, kind)
        for vendor, place in usable
        if may_offer(caller, vendor, item_type) and live.items.may_have(Capability(kind.value), place.key)
    }


def _tools(live: Runtime, caller: Caller, vendor: Vendor, place: Destination) -> SeenList:
    rights = tool_rights(caller.principal, caller.organization, vendor)
    index = live.directory.known(place)
    if index is None:
        return SeenList(place.key.digest, rights)
    return SeenList(place.key.digest, rights, index.content.digest, index.is_outdated)


def _items(live: Runtime, caller: Caller, vendor: Vendor, place: Destination, kind: Listed) -> SeenList:
    rights: Hashable = item_limits(caller.principal, caller.organization, vendor, ItemType(kind.value))
    marks: list[Hashable] = []
    if kind is Listed.RESOURCES and depend_on_tools(caller, vendor):  # apps of tools are among them
        index = live.directory.known(place)
        rights = (rights, tool_rights(caller.principal, caller.organization, vendor))
        marks.append(None if index is None else index.content.digest)
    indexes = [live.items.known(each, place) for each in _ITEM_KINDS[kind]]
    marks += [None if each is None else each.content.own_body for each in indexes]
    mark = None if None in marks else tuple(marks)
    return SeenList(place.key.digest, rights, mark, any(each is not None and each.is_outdated for each in indexes))
