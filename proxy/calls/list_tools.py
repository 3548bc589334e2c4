"""tools/list: the tools a caller may call, of all vendors at once, without waiting for slow ones.

The rules are those of a call: `decide.may_use_vendor` and `decide.may_call_tool`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import repeat

import structlog
from django.conf import settings

from credentials.resolve import CredentialRef
from gateway.catalog.vendor import Vendor
from gateway.lib.shared_body import SharedBody
from proxy.cache.list_bodies import ListPart
from proxy.calls.decide import is_said_to_be_missing, may_call_tool, may_use_vendor, tool_rights
from proxy.calls.open_destination import after_rejection, refused_scopes, usable_now
from proxy.outcomes import Denied
from proxy.protocol.tool_names import ExposedTool
from proxy.request_context import RequestContext
from proxy.vendors import fair_scheduler
from proxy.vendors.destination import Destination
from proxy.vendors.errors import VendorProblem
from proxy.vendors.tool_list_cache import ToolIndex

log = structlog.get_logger(__name__)
INTERNAL_ERROR = "internal_error"  # the same code as in answers and rows of calls


@dataclass(frozen=True, slots=True)
class ListedTools:
    """`body`: definitions sorted by name, joined by commas. `unavailable`: by slug, the reason for each vendor that is
    missing or outdated."""

    body: SharedBody
    unavailable: dict[str, str]


async def list_tools(context: RequestContext, vendors: Sequence[Vendor] | None = None) -> ListedTools:
    """The caller's tools at `vendors`, or at all vendors it may use. Spec: §4.15 · D77, D111, D164"""
    listed, unavailable = await usable_lists(context, vendors, is_unified=not vendors)
    parts = [part for _, part in listed]
    known = context.runtime.list_bodies.get(parts)
    if known is not None:
        return ListedTools(known, unavailable)
    owner = context.caller.principal.org_id
    work = partial(_build, context, listed)
    size_bytes = sum(part.content.received_bytes for part in parts)
    built, failed = await fair_scheduler.run_small_inline(owner, work, size_bytes)
    body = SharedBody(built, owner=owner, is_kept=not failed)
    if not failed:
        context.runtime.list_bodies.put(parts, body, owner=owner)
    return ListedTools(body, {**unavailable, **dict.fromkeys(failed, INTERNAL_ERROR)})


async def usable_lists(
    context: RequestContext, vendors: Sequence[Vendor] | None = None, *, is_unified: bool = True
) -> tuple[list[tuple[Vendor, ListPart]], dict[str, str]]:
    """The lists of the vendors, or of all, that the caller may use; and by slug why one is missing or outdated.

    `is_unified`: the name of a tool decides its vendor, as at the unified endpoint.
    """
    catalog = context.caller.catalog
    usable: list[Vendor] = []
    unconnected: dict[str, str] = {}
    for vendor in vendors or catalog.all():
        found = may_use_vendor(context.caller, vendor)
        if not isinstance(found, Denied):
            usable.append(vendor)
        elif is_said_to_be_missing(context.caller, vendor, found):
            unconnected[vendor.slug] = found.denial.value
    # A name belongs to one vendor only, as in a call: equal names of others are left out, even if the owner is down.
    other_prefixes = [catalog.longer_prefixes(vendor) if is_unified else () for vendor in usable]
    parts = await asyncio.gather(*map(_guarded_part, repeat(context), usable, other_prefixes, repeat(is_unified)))
    unavailable = {vendor.slug: reason for vendor, (_, reason) in zip(usable, parts, strict=True) if reason is not None}
    listed = [(vendor, part) for vendor, (part, _) in zip(usable, parts, strict=True) if part is not None]
    return listed, unconnected | unavailable


def is_shown(context: RequestContext, vendor: Vendor, part: ListPart, tool: ExposedTool) -> bool:
    """Whether the caller may call the tool, and its name belongs to the vendor."""
    if part.other_prefixes and tool.exposed_name.startswith(part.other_prefixes):
        return False
    is_read_only = part.content.policy(tool).read_only
    rights = context.caller.principal, context.caller.organization, vendor
    return may_call_tool(*rights, tool.vendor_name, is_read_only=is_read_only) is None


def may_list(context: RequestContext, vendor: Vendor) -> bool:
    return not isinstance(may_use_vendor(context.caller, vendor), Denied)


async def vendor_index(context: RequestContext, vendor: Vendor, *, deadline: float) -> ToolIndex | str:
    """The vendor's index, or the reason why there is none."""
    usable = await usable_now(context, vendor)
    if isinstance(usable, Denied):
        return usable.denial.value
    try:
        return await context.runtime.directory.index(vendor, usable[1], deadline=deadline)
    except VendorProblem as problem:
        if not usable[0].is_connection:
            return problem.fault.value
        return await _index_after_refusal(context, vendor, usable, problem, deadline)


async def _index_after_refusal(
    context: RequestContext,
    vendor: Vendor,
    usable: tuple[CredentialRef, Destination],
    problem: VendorProblem,
    deadline: float,
) -> ToolIndex | str:
    """The index with a renewed token, where the vendor refused the one in use; the scopes that it names are noted."""
    connection, destination = usable
    if problem.scopes_wanted:
        await refused_scopes(context, vendor, connection, destination, problem.scopes_wanted)
    again = await after_rejection(context, vendor, connection) if problem.is_rejection else None
    if isinstance(again, Denied):
        return again.denial.value
    if again is None:
        return problem.fault.value
    try:
        return await context.runtime.directory.index(vendor, again[1], deadline=deadline)
    except VendorProblem as second:
        return second.fault.value


async def _guarded_part(
    context: RequestContext, vendor: Vendor, other_prefixes: tuple[str, ...], is_unified: bool
) -> tuple[ListPart | None, str | None]:
    """The vendor's part, and why it is missing or outdated."""
    deadline = asyncio.get_running_loop().time() + min(settings.TOOL_LIST_DEADLINE_S, vendor.timeout_seconds)
    try:
        index = await vendor_index(context, vendor, deadline=deadline)
    except Exception:
        # An internal error with one vendor must not hide the tools of the others.
        log_internal_error(context, vendor)
        return None, INTERNAL_ERROR
    if isinstance(index, str):
        return None, index
    rights = tool_rights(context.caller.principal, context.caller.organization, vendor)
    part = ListPart(index.content, rights, other_prefixes, is_unified)
    return part, None if index.failure is None else index.failure.value


def _build(context: RequestContext, listed: Sequence[tuple[Vendor, ListPart]]) -> tuple[bytes, list[str]]:
    """The body, and the slugs of vendors that are left out because of an internal error. Thread-safe."""
    by_name: dict[str, bytes] = {}
    failed: list[str] = []
    for vendor, part in listed:
        try:
            by_name.update(_shown(context, vendor, part))
        except Exception:
            log_internal_error(context, vendor)
            failed.append(vendor.slug)
    return b",".join([by_name[name] for name in sorted(by_name)]), failed


def _shown(context: RequestContext, vendor: Vendor, part: ListPart) -> dict[str, bytes]:
    """Definitions by exposed name."""
    return {
        tool.exposed_name: part.content.shown(tool.exposed_name, is_unified=part.is_unified)
        for tool in part.content.tools.tools
        if is_shown(context, vendor, part, tool)
    }


def log_internal_error(context: RequestContext, vendor: Vendor) -> None:
    log.exception("tools not listed", request_id=context.request_id, vendor=vendor.slug)
