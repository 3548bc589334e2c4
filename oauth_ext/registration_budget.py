"""The limit of registrations and document look-ups in a minute, over all addresses. Spec: D117"""

from __future__ import annotations

import msgspec
from django.conf import settings

from gateway.coordination import backend
from gateway.coordination.store import Admission


def count_for_all(address: str) -> Admission:
    """Counts one registration; the caller has counted it for `address` already. Raises: CoordinationUnavailable."""
    store, rule = backend.current(), settings.CLIENT_REGISTRATIONS_OF_ALL
    left = store.peek(rule, "")
    if left.remaining <= settings.CLIENT_REGISTRATIONS_SHARE_KEPT:
        # The last third is for addresses with few registrations in this minute; others are refused and not counted.
        own = store.peek(settings.CLIENT_REGISTRATIONS, address)
        if own.rule.limit - own.remaining > settings.CLIENT_REGISTRATIONS_FEW:
            return msgspec.structs.replace(left, allowed=False, retry_after_s=left.retry_after_s or rule.window_s)
    return store.hit(rule, "")
