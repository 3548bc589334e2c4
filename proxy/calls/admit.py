"""Admission: counts a request and checks the caller, in one round trip to the coordination store."""

from __future__ import annotations

from gateway.catalog.vendor import Vendor
from gateway.coordination.rules import Rule
from gateway.coordination.store import Admission
from proxy.cache.keys import epoch_name, scope_of
from proxy.caller import Caller
from proxy.calls.decide import Allowed, may_use_vendor
from proxy.request_context import Exchange


async def admit(exchange: Exchange, rule: Rule, vendor: Vendor | None = None) -> Admission:
    """Count the request; then `exchange.caller` is current. Raises: InvalidBearer; DatabaseUnavailable.

    Spec: §8 · D20, D21
    """
    caller = exchange.caller
    # One round trip for both: the epoch of kept results is read with those of the caller.
    results = None if vendor is None else _results_epoch(caller, vendor)
    names = caller.epoch_names if results is None else (*caller.epoch_names, results)
    admission = await exchange.runtime.store.admit(rule, caller.principal.subject, names)
    exchange.admission = admission
    current = admission.epochs
    if results is not None and current is not None:
        exchange.cache_epoch, current = (results, current[-1]), current[:-1]
    # Reloads the caller if an epoch has changed, and raises InvalidBearer if the right is gone.
    exchange.caller = await exchange.runtime.snapshots.confirmed(exchange.bearer, caller, current)
    return admission


def _results_epoch(caller: Caller, vendor: Vendor) -> str | None:
    # Decided for a caller that is not confirmed yet. If it changes, the name differs and the value is not used.
    verdict = may_use_vendor(caller, vendor)
    if not isinstance(verdict, Allowed):
        return None
    return epoch_name(scope_of(caller.principal, verdict.credential), vendor.slug)
