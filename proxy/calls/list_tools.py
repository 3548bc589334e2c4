"""tools/list: every tool the caller may call, over all vendors at once, without waiting for the slow ones.

The same two questions as for a call (`decide.may_use_vendor`, `decide.may_call_tool`) decide what is shown.
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
from proxy.calls.reach import destination
from proxy.exchange import Exchange
from proxy.outcomes import Denied
from proxy.vendors.errors import VendorProblem
from proxy.vendors.tool_index import ToolIndex

log = structlog.get_logger(__name__)
INTERNAL_ERROR = "internal_error"  # as in the answer to a call and in its row


@dataclass(frozen=True, slots=True)
class ListedTools:
    """Encoded definitions in the order of their names, and why a vendor is missing or may be out of date, by slug."""

    encoded: Sequence[bytes]
    unavailable: dict[str, str]


async def list_tools(exchange: Exchange, vendors: Sequence[Vendor] | None = None) -> ListedTools:
    """The caller's tools at `vendors`, or at every vendor of the catalog that it may use. Spec: §4.15 · D77, D111, D164

    Where all vendors are listed, a name belongs to one of them as in a call: another vendor's tool of that name is
    left out, whether or not the owner can be asked.
    """
    catalog = exchange.caller.catalog
    usable = [vendor for vendor in (vendors or catalog.all()) if may_list(exchange, vendor)]
    others = [() if vendors else catalog.longer_prefixes(vendor) for vendor in usable]
    answers = await asyncio.gather(*map(_guarded, repeat(exchange), usable, others))
    by_name: dict[str, bytes] = {}
    unavailable: dict[str, str] = {}
    for vendor, (tools, reason) in zip(usable, answers, strict=True):
        by_name.update(tools)
        if reason is not None:
            unavailable[vendor.slug] = reason
    return ListedTools([by_name[name] for name in sorted(by_name)], unavailable)


def may_list(exchange: Exchange, vendor: Vendor) -> bool:
    """Whether the caller may use the vendor, and the organization chose it: credentials, or none needed and granted."""
    return not isinstance(may_use_vendor(exchange.caller, vendor), Denied)


async def vendor_index(exchange: Exchange, vendor: Vendor, *, deadline: float) -> ToolIndex | str:
    """The vendor's index, or the reason why there is none."""
    verdict = may_use_vendor(exchange.caller, vendor)
    if isinstance(verdict, Denied):
        return verdict.denial.value
    where = destination(exchange.caller.organization, vendor, verdict.credential)
    if isinstance(where, Denied):
        return where.denial.value
    try:
        return await exchange.runtime.directory.index(vendor, where, deadline=deadline)
    except VendorProblem as problem:
        return problem.fault.value


async def _guarded(exchange: Exchange, vendor: Vendor, others: tuple[str, ...]) -> tuple[dict[str, bytes], str | None]:
    """What `_vendor_tools` says. A fault of ours with one vendor takes the tools of no other one with it."""
    try:
        return await _vendor_tools(exchange, vendor, others)
    except Exception:
        log.exception("tools not listed", request_id=exchange.request_id, vendor=vendor.slug)
        return {}, INTERNAL_ERROR


async def _vendor_tools(
    exchange: Exchange, vendor: Vendor, others: tuple[str, ...]
) -> tuple[dict[str, bytes], str | None]:
    """The definitions that the role may call, by exposed name, and what failed: they are missing then, or older.

    Names that begin as one of `others` belong to other vendors.
    """
    deadline = asyncio.get_running_loop().time() + min(settings.TOOL_LIST_DEADLINE_S, vendor.timeout_seconds)
    index = await vendor_index(exchange, vendor, deadline=deadline)
    if isinstance(index, str):
        return {}, index
    tools = {
        tool.exposed_name: index.encoded[tool.exposed_name]
        for tool in index.tools.tools
        if not (others and tool.exposed_name.startswith(others))
        and may_call_tool(exchange.caller, vendor, tool.vendor_name) is None
    }
    return tools, None if index.failure is None else index.failure.value
