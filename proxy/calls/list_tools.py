"""tools/list: the tools a caller may call, of all vendors at once, without waiting for slow ones.

The rules are those of a call: `decide.may_use_vendor` and `decide.may_call_tool`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat

import structlog
from django.conf import settings

from gateway.catalog.vendor import Vendor
from proxy.calls.decide import may_call_tool, may_use_vendor
from proxy.calls.open_destination import usable_vendor
from proxy.outcomes import Denied
from proxy.request_context import RequestContext
from proxy.vendors.errors import VendorProblem
from proxy.vendors.tool_list_cache import ToolIndex

log = structlog.get_logger(__name__)
INTERNAL_ERROR = "internal_error"  # the same code as in answers and rows of calls


@dataclass(frozen=True, slots=True)
class ListedTools:
    """`encoded` is sorted by name; `unavailable` has a reason for each vendor that is missing or outdated, by slug."""

    encoded: Sequence[bytes]
    unavailable: dict[str, str]


async def list_tools(context: RequestContext, vendors: Sequence[Vendor] | None = None) -> ListedTools:
    """The caller's tools at `vendors`, or at all vendors it may use. Spec: §4.15 · D77, D111, D164"""
    catalog = context.caller.catalog
    usable = [vendor for vendor in (vendors or catalog.all()) if may_list(context, vendor)]
    # A name belongs to one vendor only, as in a call: equal names of others are left out, even if the owner is down.
    other_prefixes = [() if vendors else catalog.longer_prefixes(vendor) for vendor in usable]
    listed = await asyncio.gather(*map(_guarded, repeat(context), usable, other_prefixes))
    by_name: dict[str, bytes] = {}
    unavailable: dict[str, str] = {}
    for vendor, (tools, reason) in zip(usable, listed, strict=True):
        by_name.update(tools)
        if reason is not None:
            unavailable[vendor.slug] = reason
    return ListedTools([by_name[name] for name in sorted(by_name)], unavailable)


def may_list(context: RequestContext, vendor: Vendor) -> bool:
    return not isinstance(may_use_vendor(context.caller, vendor), Denied)


async def vendor_index(context: RequestContext, vendor: Vendor, *, deadline: float) -> ToolIndex | str:
    """The vendor's index, or the reason why there is none."""
    usable = usable_vendor(context.caller, vendor)
    if isinstance(usable, Denied):
        return usable.denial.value
    try:
        return await context.runtime.directory.index(vendor, usable[1], deadline=deadline)
    except VendorProblem as problem:
        return problem.fault.value


async def _guarded(
    context: RequestContext, vendor: Vendor, other_prefixes: tuple[str, ...]
) -> tuple[dict[str, bytes], str | None]:
    try:
        return await _vendor_tools(context, vendor, other_prefixes)
    except Exception:
        # An internal error with one vendor must not hide the tools of the others.
        log.exception("tools not listed", request_id=context.request_id, vendor=vendor.slug)
        return {}, INTERNAL_ERROR


async def _vendor_tools(
    context: RequestContext, vendor: Vendor, other_prefixes: tuple[str, ...]
) -> tuple[dict[str, bytes], str | None]:
    """Definitions by exposed name, without names that start as `other_prefixes`; and why they are missing or old."""
    deadline = asyncio.get_running_loop().time() + min(settings.TOOL_LIST_DEADLINE_S, vendor.timeout_seconds)
    index = await vendor_index(context, vendor, deadline=deadline)
    if isinstance(index, str):
        return {}, index
    principal, organization = context.caller.principal, context.caller.organization
    tools = {
        tool.exposed_name: index.content.encoded[tool.exposed_name]
        for tool in index.content.tools.tools
        if not (other_prefixes and tool.exposed_name.startswith(other_prefixes))
        and may_call_tool(principal, organization, vendor, tool.vendor_name) is None
    }
    return tools, None if index.failure is None else index.failure.value
