"""Counts tool calls for the metrics: numbers in memory, nothing else. Labels never hold names of tenants.

On the hot path, so each line here was measured. Spec: contract.md 7 · docs/decisions/0076
"""

from __future__ import annotations

from gateway.lib.metrics import call_tally
from gateway.lib.metrics.names import NO_VENDOR
from oauth_ext.bearer import InvalidBearer
from proxy.outcomes import CacheStatus, ClientClosed, CutOff, Delivered, Failed, ItemOutcome, RateLimited, VendorError
from proxy.request_context import RequestContext
from proxy.sessions.client_session import SessionEnded

_CACHE_RESULTS = {status: status.value.lower() for status in CacheStatus}
_SENT = frozenset({Delivered, VendorError, Failed})  # outcomes of calls that a vendor or a kept result answered


def count_outcome(
    context: RequestContext,
    route: str,
    outcome: ItemOutcome | ClientClosed | CutOff,
    status: str,
    *,
    vendor: str,
    tool: str = "",
) -> None:
    """Count a call that ended, and its times. `status`: as in its row. `tool`: empty if no such one was found."""
    kind, timing = type(outcome), context.timing
    name = "rate_limited" if kind is RateLimited else status
    _count(context, route, name, vendor, tool, _CACHE_RESULTS[context.cache] if kind in _SENT else "")
    call_tally.auth.observe(timing.auth.seconds)
    if timing.session.seconds:
        call_tally.session.observe(timing.session.seconds)
        call_tally.vendor.observe(timing.vendor.seconds)
    call_tally.audit.observe(timing.audit_s)
    call_tally.total.observe(timing.total_s())


def count_failure(context: RequestContext, route: str, fault: Exception, *, vendor: str) -> None:
    """Count a call that ended without an outcome: a store is away, or the bearer is no longer valid."""
    _count(
        context, route, "denied" if isinstance(fault, InvalidBearer | SessionEnded) else "unavailable", vendor, "", ""
    )


def count_commit(context: RequestContext, began_s: float) -> None:
    """A record of the call is durable; `began_s`: the time of `perf_counter` when it was written."""
    call_tally.audit_commit.observe(context.timing.note_audit(began_s))


def _count(context: RequestContext, route: str, outcome: str, vendor: str, tool: str, cache: str) -> None:
    # The path may name a vendor that nothing knows: anything, chosen by strangers.
    label = vendor if vendor in context.caller.catalog.by_slug else NO_VENDOR
    admission = context.admission
    if admission is None:
        key = (label, route, outcome, cache, "", "")
    else:
        count = "own" if admission.epochs is None else "shared"
        key = (label, route, outcome, cache, count, "allowed" if admission.allowed else "refused")
    calls = call_tally.calls
    calls[key] = calls.get(key, 0) + 1
    context.called = (label, tool, outcome)
