"""Result cache around a call: reads may use kept results, writes invalidate them. Spec: §4.14 · D103"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from proxy.cache.keys import cache_key, epoch_name, scope_of
from proxy.cache.result_cache import Answer
from proxy.calls.find_tool import FoundTool
from proxy.outcomes import Failed, VendorFault
from proxy.request_context import Exchange

Send = Callable[[], Awaitable[Answer]]


async def cached_read(
    exchange: Exchange, found: FoundTool, arguments: Mapping[str, Any], send: Send, *, keeps: bool, shares: bool = True
) -> Answer:
    """The answer from the cache or the vendor; sets `exchange.cache`."""
    scope = scope_of(exchange.caller.principal, found.credential)
    name = epoch_name(scope, found.vendor.slug)
    epochs = exchange.runtime.scope_epochs
    seen = exchange.cache_epoch
    epoch = await epochs.current(name, seen[1] if seen is not None and seen[0] == name else None) if keeps else None
    # Not cached, or the store is away.
    if epoch is None:
        answer = await send()
    else:
        key = cache_key(scope, found.credential, found.tool.vendor_name, arguments, found.destination.key)
        results = exchange.runtime.results
        # Without `shares`, the caller sees progress of its own vendor call, and may end it.
        answer, exchange.cache = await results.read(key, epoch, found.policy.ttl_s, send, shares=shares)
    if isinstance(answer, Failed) and answer.fault is VendorFault.REJECTED_CREDENTIALS:
        await epochs.renew(name)  # rejected credentials lose the right to results read before
    return answer


async def invalidating_write(exchange: Exchange, found: FoundTool, send: Send) -> Answer:
    """Every earlier result is invalid before the answer leaves."""
    name = epoch_name(scope_of(exchange.caller.principal, found.credential), found.vendor.slug)
    try:
        return await send()
    finally:
        # Also after a timeout or a cancelled call: the vendor may have made the change.
        await exchange.runtime.scope_epochs.renew(name)
