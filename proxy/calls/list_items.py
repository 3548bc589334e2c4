"""resources/list, resources/templates/list and prompts/list, of all vendors at once, without waiting for slow ones.

`offered` tells what the caller's vendors declare beside tools. The rules are those of a call:
`decide.may_use_vendor` and `ItemRights`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import repeat

import structlog
from django.conf import settings

from gateway.catalog.vendor import Vendor
from orgs.allowed_items import ItemType
from proxy.calls.item_rights import TYPES, ItemRights, may_offer, rights_at
from proxy.calls.list_tools import INTERNAL_ERROR, may_list
from proxy.calls.open_destination import usable_now
from proxy.outcomes import Denied, Failed, VendorFault
from proxy.protocol import item_definitions
from proxy.protocol.item_kinds import CAPABILITIES, Capability, ItemKind
from proxy.request_context import RequestContext
from proxy.vendors import fair_scheduler
from proxy.vendors.destination import Destination
from proxy.vendors.errors import VendorProblem
from proxy.vendors.item_list import ItemIndex, ItemList

log = structlog.get_logger(__name__)
# For what a vendor declares, when it is not known yet. Its tools are listed next, over the session that is opened here.
DECLARED_DEADLINE_S = 3.0
TRY_BYTES = 64  # to compare an address with a template takes as long as other work on so many bytes
NOT_LISTED = "The vendor's list cannot be read at the moment."


@dataclass(frozen=True, slots=True)
class ListedItems:
    """`bodies`: definitions, joined by commas, of one vendor each. `unavailable`: by slug, why a vendor is missing or
    outdated. `is_offered`: whether any vendor has such a list, as far as vendors answered."""

    bodies: list[bytes]
    unavailable: dict[str, str]
    is_offered: bool


@dataclass(frozen=True, slots=True)
class _Part:
    vendor: Vendor
    index: ItemIndex | None = None
    reason: str | None = None  # why the list is missing or outdated
    is_offered: bool = False
    failed: Failed | None = None  # the list is not known, and may be later
    rights: ItemRights | None = None  # with `index`


async def list_items(context: RequestContext, kind: ItemKind, vendor: Vendor | None) -> ListedItems:
    """The caller's entries at `vendor`, with the vendor's own names, or at all vendors it may use."""
    parts = await _parts(context, kind, vendor)
    bodies = [
        await _body(context, part.rights, part.index.content, is_unified=vendor is None)
        for part in parts
        if part.index is not None and part.rights is not None
    ]
    unavailable = {part.vendor.slug: part.reason for part in parts if part.reason is not None}
    is_offered = any(part.is_offered or part.reason is not None for part in parts)
    return ListedItems(list(filter(None, bodies)), unavailable, is_offered)


async def known_lists(
    context: RequestContext, kind: ItemKind
) -> tuple[list[tuple[ItemRights, ItemList]], list[Failed]]:
    """The whole lists of all vendors that the caller may use, with its rights, and the failures of the others."""
    parts = await _parts(context, kind, None)
    lists = [(part.rights, part.index.content) for part in parts if part.index is not None and part.rights is not None]
    return lists, [part.failed for part in parts if part.failed is not None]


async def offered(context: RequestContext, vendor: Vendor | None) -> frozenset[str]:
    """The capabilities beside tools of `vendor`, or of all vendors of the caller; none of one that does not answer."""
    deadline = asyncio.get_running_loop().time() + DECLARED_DEADLINE_S
    usable = _usable(context, vendor, ItemType)
    found = await asyncio.gather(*map(_guarded_declared, repeat(context), usable, repeat(deadline)))
    return frozenset().union(*found)


def _usable(context: RequestContext, vendor: Vendor | None, kinds: Iterable[ItemType]) -> list[Vendor]:
    """Those that may have something of these kinds for the caller, in an order that stays the same."""
    asked: Sequence[Vendor] = [vendor] if vendor else context.caller.catalog.all()
    return [
        each
        for each in sorted(asked, key=lambda one: one.slug)
        if may_list(context, each) and any(may_offer(context.caller, each, kind) for kind in kinds)
    ]


async def _parts(context: RequestContext, kind: ItemKind, vendor: Vendor | None) -> list[_Part]:
    usable = _usable(context, vendor, (TYPES[kind.capability],))
    return await asyncio.gather(*map(_guarded_part, repeat(context), usable, repeat(kind)))


async def _guarded_part(context: RequestContext, vendor: Vendor, kind: ItemKind) -> _Part:
    deadline = asyncio.get_running_loop().time() + min(settings.TOOL_LIST_DEADLINE_S, vendor.timeout_seconds)
    try:
        return await _part(context, vendor, kind, deadline)
    except VendorProblem as problem:
        failed = Failed(vendor.slug, problem.fault, problem.detail, problem.retry_after_s)
        return _Part(vendor, reason=problem.fault.value, failed=failed)
    except Exception:
        # An internal error with one vendor must not hide the lists of the others.
        log.exception("list not made", request_id=context.request_id, vendor=vendor.slug, method=kind.method)
        return _Part(vendor, reason=INTERNAL_ERROR, failed=Failed(vendor.slug, VendorFault.UNAVAILABLE, NOT_LISTED))


async def _part(context: RequestContext, vendor: Vendor, kind: ItemKind, deadline: float) -> _Part:
    """Raises: VendorProblem."""
    destination = await _destination(context, vendor)
    if isinstance(destination, Denied):
        return _Part(vendor, reason=destination.denial.value)
    items = context.runtime.items
    if kind.capability not in await items.declared(destination, deadline=deadline):
        return _Part(vendor)
    rights = ItemRights(context.caller, vendor)
    if kind.capability is Capability.RESOURCES:
        rights = await rights_at(context, vendor, destination, deadline=deadline)
    if not rights.offers(TYPES[kind.capability]):
        return _Part(vendor)
    index = await items.index(kind, vendor, destination, deadline=deadline)
    reason = None if index.failure is None else index.failure.value
    return _Part(vendor, index, reason, is_offered=True, rights=rights)


async def _destination(context: RequestContext, vendor: Vendor) -> Destination | Denied:
    usable = await usable_now(context, vendor)
    return usable if isinstance(usable, Denied) else usable[1]


async def _guarded_declared(context: RequestContext, vendor: Vendor, deadline: float) -> frozenset[str]:
    try:
        return await _declared(context, vendor, deadline)
    except VendorProblem:
        return frozenset()
    except Exception:
        log.exception("capabilities not known", request_id=context.request_id, vendor=vendor.slug)
        return frozenset()


async def _declared(context: RequestContext, vendor: Vendor, deadline: float) -> frozenset[str]:
    """Of the vendor's capabilities, those of which there is something for the caller. Raises: VendorProblem."""
    destination = await _destination(context, vendor)
    if isinstance(destination, Denied):
        return frozenset()
    declared = await context.runtime.items.declared(destination, deadline=deadline) & CAPABILITIES
    rights = ItemRights(context.caller, vendor)
    if Capability.RESOURCES in declared and not rights.offers(ItemType.RESOURCES):
        rights = await rights_at(context, vendor, destination, deadline=deadline)
    closed = {capability for capability, kind in TYPES.items() if not rights.offers(kind)}
    left = declared - closed
    # Of what the caller may not use, nothing is completed.
    return left if left - {Capability.COMPLETIONS} or not closed & declared else frozenset()


async def _body(context: RequestContext, rights: ItemRights, content: ItemList, *, is_unified: bool) -> bytes:
    """The entries that the caller may use; beside the event loop, if there are many to look through."""
    catalog, vendor = context.caller.catalog, rights.vendor
    longer = catalog.longer_prefixes(vendor) if is_unified and content.kind is ItemKind.PROMPT else ()
    body = content.exposed_body if is_unified else content.own_body
    # A name belongs to one vendor only: equal names of others are left out. Spec: D164
    has_others = bool(longer) and any(name.exposed.startswith(longer) for name in content.names)
    if not has_others and rights.are_all_allowed(TYPES[content.kind.capability]):
        return body
    work = partial(_shown, rights, content, body, longer)
    tries = len(content.names) * rights.template_count(TYPES[content.kind.capability])
    size_bytes = len(body) + tries * TRY_BYTES
    return await fair_scheduler.run_small_inline(context.caller.principal.org_id, work, size_bytes)


def _shown(rights: ItemRights, content: ItemList, body: bytes, longer: tuple[str, ...]) -> bytes:
    """Thread-safe. `longer`: prefixes of names that belong to other vendors."""
    kind = TYPES[content.kind.capability]
    return b",".join(
        bytes(raw)
        for name, raw in zip(content.names, item_definitions.entries_of(body), strict=True)
        if not (longer and name.exposed.startswith(longer)) and rights.refused(kind, name.own) is None
    )
