"""Result cache around a call: reads may use kept results, writes invalidate them. Spec: §4.14 · D103"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from proxy.cache.keys import cache_key, epoch_name, scope_of
from proxy.cache.result_cache import VendorOutcome
from proxy.calls.find_tool import FoundTool
from proxy.outcomes import CacheStatus, Failed, VendorFault
from proxy.request_context import RequestContext

SendToVendor = Callable[[], Awaitable[VendorOutcome]]


async def cached_read(
    context: RequestContext,
    found: FoundTool,
    arguments: Mapping[str, Any],
    send: SendToVendor,
    *,
    is_shareable: bool = True,
) -> tuple[VendorOutcome, CacheStatus]:
    """The answer from the cache or the vendor, and which of the two. Without the store, as `uncached_read`."""
    scope = scope_of(context.caller.principal, found.credential)
    name = _results_name(context, found)
    epochs = context.runtime.scope_epochs
    seen = context.cache_epoch
    epoch = await epochs.current(name, seen[1] if seen is not None and seen[0] == name else None)
    if epoch is None:
        return await uncached_read(context, found, send), CacheStatus.BYPASS
    key = cache_key(scope, found.credential, found.tool.vendor_name, arguments, found.destination.key)
    results = context.runtime.results
    # Without `is_shareable`, the caller sees progress of its own vendor call, and may end it.
    answer, status = await results.read(key, epoch, found.policy.ttl_s, send, is_shareable=is_shareable)
    if _is_rejected(answer):
        await epochs.renew(name)
    return answer, status


async def uncached_read(context: RequestContext, found: FoundTool, send: SendToVendor) -> VendorOutcome:
    name = _results_name(context, found)
    answer = await send()
    if _is_rejected(answer):
        await context.runtime.scope_epochs.renew(name)
    return answer


async def invalidating_write(context: RequestContext, found: FoundTool, send: SendToVendor) -> VendorOutcome:
    """Every earlier result is invalid before the answer leaves."""
    name = _results_name(context, found)  # a write that cannot end results is not sent
    try:
        return await send()
    finally:
        # Also after a timeout or a cancelled call: the vendor may have made the change.
        await context.runtime.scope_epochs.renew(name)


def _is_rejected(answer: VendorOutcome) -> bool:
    # Rejected credentials lose the right to results read before.
    return isinstance(answer, Failed) and answer.fault is VendorFault.REJECTED_CREDENTIALS


def _results_name(context: RequestContext, found: FoundTool) -> str:
    """The epoch of all results that a write of this call may have changed."""
    principal = context.caller.principal
    return epoch_name(principal.org_id, scope_of(principal, found.credential), found.vendor.slug)
