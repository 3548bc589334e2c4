"""Test connection: each vendor is asked for its tools now, with the rights and credentials of the person's own calls.

As tools/list, it counts as one request and writes no row: the log has tool calls. Spec: D155
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter

from django.conf import settings

from gateway.catalog.vendor import Vendor
from proxy.calls.admit import admit
from proxy.calls.decide import may_call_tool
from proxy.calls.open_destination import usable_now
from proxy.control_plane.calls_from_pages import PageCaller, in_pipeline
from proxy.outcomes import Denied, Failed, RateLimited
from proxy.request_context import RequestContext
from proxy.vendors.errors import VendorProblem

CONNECTION_TEST = "Connection test"
# Vendors that one test asks at a time.
AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class ConnectionResult:
    """`allowed` of the `offered` tools may be called. Without `problem` the connection works."""

    vendor: Vendor
    problem: Denied | Failed | RateLimited | None = None
    allowed: int = 0
    offered: int = 0
    took_ms: int = 0


def ask_vendors(by: PageCaller, vendors: Sequence[Vendor]) -> list[ConnectionResult]:
    """One result for each vendor, in their order, within DISCOVER_DEADLINE_S. Raises: as `in_pipeline`."""
    return in_pipeline(by, partial(_ask_all, vendors))


async def _ask_all(vendors: Sequence[Vendor], context: RequestContext) -> list[ConnectionResult]:
    admission, context.caller = await admit(context, settings.BACKSTOP)
    if not admission.allowed:
        return [ConnectionResult(vendor, RateLimited(admission.retry_after_s)) for vendor in vendors]
    places = asyncio.Semaphore(AT_ONCE)
    deadline = asyncio.get_running_loop().time() + settings.DISCOVER_DEADLINE_S

    async def ask(vendor: Vendor) -> ConnectionResult:
        async with places:
            return await _ask(context, vendor, deadline)

    return list(await asyncio.gather(*map(ask, vendors)))


async def _ask(context: RequestContext, vendor: Vendor, deadline: float) -> ConnectionResult:
    usable = await usable_now(context, vendor)
    if isinstance(usable, Denied):
        return ConnectionResult(vendor, usable)
    began = perf_counter()
    try:
        index = await context.runtime.directory.fresh_index(vendor, usable[1], deadline=deadline)
    except VendorProblem as problem:
        failed = Failed(vendor.slug, problem.fault, problem.detail, problem.retry_after_s)
        return ConnectionResult(vendor, failed, took_ms=_ms_since(began))
    caller, tools = context.caller, index.content.tools.tools
    rights = (caller.principal, caller.organization, vendor)
    allowed = sum(
        may_call_tool(*rights, tool.vendor_name, is_read_only=index.content.policy(tool).read_only) is None
        for tool in tools
    )
    return ConnectionResult(vendor, allowed=allowed, offered=len(tools), took_ms=_ms_since(began))


def _ms_since(began: float) -> int:
    return round((perf_counter() - began) * 1000)
