"""Between the decision and the vendor: a read may be answered by a kept result, a write makes kept results worthless.

Whether the caller may call at all was decided before, every time.   Spec: §4.14 · D103
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from proxy.cache.keys import cache_key, epoch_name, scope_of
from proxy.cache.result_cache import Answer
from proxy.calls.find_tool import FoundTool
from proxy.exchange import Exchange
from proxy.outcomes import Failed, VendorFault

Send = Callable[[], Awaitable[Answer]]


async def read_through(
    exchange: Exchange, found: FoundTool, arguments: Mapping[str, Any], send: Send, *, keeps: bool, shares: bool = True
) -> Answer:
    """The answer to a read-only call, kept (if the call `keeps`) or from the vendor; `exchange.cache` says which.

    A call that does not `shares` its vendor call is alone in seeing its progress, and may end it.
    """
    scope = scope_of(exchange.caller.principal, found.credential)
    name = epoch_name(scope, found.vendor.slug)
    epochs = exchange.runtime.scope_epochs
    seen = exchange.cache_epoch
    epoch = await epochs.current(name, seen[1] if seen is not None and seen[0] == name else None) if keeps else None
    if epoch is None:
        answer = await send()
    else:
        key = cache_key(scope, found.credential, found.tool.vendor_name, arguments, found.destination.key)
        results = exchange.runtime.results
        answer, exchange.cache = await results.read(key, epoch, found.policy.ttl_s, send, shares=shares)
    if isinstance(answer, Failed) and answer.fault is VendorFault.REJECTED_CREDENTIALS:
        await epochs.renew(name)  # what these credentials once read, they may not read any more
    return answer


async def write_through(exchange: Exchange, found: FoundTool, send: Send) -> Answer:
    """The vendor's answer to a call that may change something; nothing older is served to anybody who has seen it.

    However the call ends: one that timed out, or whose caller left, may have changed something all the same.
    """
    name = epoch_name(scope_of(exchange.caller.principal, found.credential), found.vendor.slug)
    try:
        return await send()
    finally:
        await exchange.runtime.scope_epochs.renew(name)
