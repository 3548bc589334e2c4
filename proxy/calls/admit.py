"""Admission: count the request and confirm the caller, in one round trip to the coordination store."""

from __future__ import annotations

from gateway.catalog.vendor import Vendor
from gateway.coordination.rules import Rule
from gateway.coordination.store import Admission
from proxy.access import Caller
from proxy.cache.keys import epoch_name, scope_of
from proxy.calls.decide import Allowed, may_use_vendor
from proxy.exchange import Exchange


async def admit(exchange: Exchange, rule: Rule, vendor: Vendor | None = None) -> Admission:
    """Whether the caller's window has room; afterwards `exchange.caller` is what the rows say now.

    With a `vendor`, the epoch of results kept for this caller is read on the same way into `exchange.cache_epoch`.
    Raises: InvalidBearer when the caller lost its right meanwhile; SnapshotUnavailable.   Spec: §8 · D20, D21
    """
    caller = exchange.caller
    results = None if vendor is None else _results_epoch(caller, vendor)
    names = caller.epoch_names if results is None else (*caller.epoch_names, results)
    admission = await exchange.runtime.store.admit(rule, caller.principal.subject, names)
    exchange.admission = admission
    current = admission.epochs
    if results is not None and current is not None:
        exchange.cache_epoch, current = (results, current[-1]), current[:-1]
    exchange.caller = await exchange.runtime.snapshots.confirmed(exchange.bearer, caller, current)
    return admission


def _results_epoch(caller: Caller, vendor: Vendor) -> str | None:
    """What is read may turn out to be of no use, when the caller changed meanwhile: the name says what it is for."""
    verdict = may_use_vendor(caller, vendor)
    if not isinstance(verdict, Allowed):
        return None
    return epoch_name(scope_of(caller.principal, verdict.credential), vendor.slug)
