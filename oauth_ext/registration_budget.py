"""The budget of registrations and look-ups of client documents in a minute, over all addresses. Spec: D117"""

from __future__ import annotations

from dataclasses import replace

from django.conf import settings

from gateway.coordination import registry
from gateway.coordination.store import Admission


def count_for_all(address: str) -> Admission:
    """Count one registration from `address`, which has been counted for the address itself.

    When little is left for all, an address that registered more than a few in this minute is refused and not counted.
    Raises: CoordinationUnavailable.
    """
    store, rule = registry.current(), settings.CLIENT_REGISTRATIONS_OF_ALL
    left = store.peek(rule, "")
    if left.remaining <= settings.CLIENT_REGISTRATIONS_SHARE_KEPT:
        own = store.peek(settings.CLIENT_REGISTRATIONS, address)
        if own.rule.limit - own.remaining > settings.CLIENT_REGISTRATIONS_FEW:
            return replace(left, allowed=False, retry_after_s=left.retry_after_s or rule.window_s)
    return store.hit(rule, "")
