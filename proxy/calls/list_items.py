"""resources/list, resources/templates/list and prompts/list, of all vendors at once, without waiting for slow ones.

`offered` tells what the caller's vendors declare beside tools. The rules are those of a call:
`decide.may_use_vendor` and `decide.may_use_items`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat

import structlog
from django.conf import settings

from gateway.catalog.vendor import Vendor
from proxy.calls.decide import may_use_items
from proxy.calls.list_tools import INTERNAL_ERROR, may_list
from proxy.calls.open_destination import usable_now
from proxy.outcomes import Denied, Failed, VendorFault
from proxy.protocol import item_definitions
from proxy.protocol.item_kinds import CAPABILITIES, ItemKind
from proxy.request_context import RequestContext
from proxy.vendors.destination import Destination
from proxy.vendors.errors import VendorProblem
from proxy.vendors.item_list import ItemIndex, ItemList

log = structlog.get_logger(__name__)
# For what a vendor declares, when it is not known yet. Its tools are listed next, over the session that is opened here.
DECLARED_DEADLINE_S = 3.0
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


async def list_items(context: RequestContext, kind: ItemKind, vendor: Vendor | None) -> ListedItems:
    """The caller's entries at `vendor`, with the vendor's own names, or at all vendors it may use."""
    parts = await _parts(context, kind, vendor)
    bodies = [
        _body(context, part.vendor, part.index.content, is_unified=vendor is None) for part in parts if part.index
    ]
    unavailable = {part.vendor.slug: part.reason for part in parts if part.reason is not None}
    is_offered = any(part.is_offered or part.reason is not None for part in parts)
    return ListedItems(list(filter(None, bodies)), unavailable, is_offered)


async def known_lists(context: RequestContext, kind: ItemKind) -> tuple[list[tuple[Vendor, ItemList]], list[Failed]]:
    """The lists of all vendors that the caller may use, and the failures of those whose list is not known."""
    parts = await _parts(context, kind, None)
    lists = [(part.vendor, part.index.content) for part in parts if part.index is not None]
    return lists, [part.failed for part in parts if part.failed is not None]


async def offered(context: RequestContext, vendor: Vendor | None) -> frozenset[str]:
    """The capabilities beside tools of `vendor`, or of all vendors of the caller; none of one that does not answer."""
    deadline = asyncio.get_running_loop().time() + DECLARED_DEADLINE_S
    found = await asyncio.gather(*map(_guarded_declared, repeat(context), _usable(context, vendor), repeat(deadline)))
    return frozenset().union(*found)


def _usable(context: RequestContext, vendor: Vendor | None) -> list[Vendor]:
    """In an order that stays the same."""
    asked: Sequence[Vendor] = [vendor] if vendor else context.caller.catalog.all()
    caller = context.caller
    return [
        each
        for each in sorted(asked, key=lambda one: one.slug)
        if may_list(context, each) and may_use_items(caller.principal, caller.organization, each) is None
    ]


async def _parts(context: RequestContext, kind: ItemKind, vendor: Vendor | None) -> list[_Part]:
    return await asyncio.gather(*map(_guarded_part, repeat(context), _usable(context, vendor), repeat(kind)))


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
    index = await items.index(kind, vendor, destination, deadline=deadline)
    return _Part(vendor, index, None if index.failure is None else index.failure.value, is_offered=True)


async def _destination(context: RequestContext, vendor: Vendor) -> Destination | Denied:
    usable = await usable_now(context, vendor)
    return usable if isinstance(usable, Denied) else usable[1]


async def _guarded_declared(context: RequestContext, vendor: Vendor, deadline: float) -> frozenset[str]:
    try:
        destination = await _destination(context, vendor)
        if isinstance(destination, Denied):
            return frozenset()
        return await context.runtime.items.declared(destination, deadline=deadline) & CAPABILITIES
    except VendorProblem:
        return frozenset()
    except Exception:
        log.exception("capabilities not known", request_id=context.request_id, vendor=vendor.slug)
        return frozenset()


def _body(context: RequestContext, vendor: Vendor, content: ItemList, *, is_unified: bool) -> bytes:
    if not is_unified:
        return content.own_body
    longer = context.caller.catalog.longer_prefixes(vendor) if content.kind is ItemKind.PROMPT else ()
    if not any(name.exposed.startswith(longer) for name in content.names if longer):
        return content.exposed_body
    # A name belongs to one vendor only: equal names of others are left out. Spec: D164
    entries = zip(content.names, item_definitions.entries_of(content.exposed_body), strict=True)
    return b",".join(bytes(raw) for name, raw in entries if not name.exposed.startswith(longer))
