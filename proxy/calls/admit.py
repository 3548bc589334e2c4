"""Admission: counts a request and checks the caller, in one round trip to the coordination store."""

from __future__ import annotations

from gateway.catalog.vendor import Vendor
from gateway.coordination.rules import Rule
from gateway.coordination.store import Admission
from proxy.cache.keys import epoch_name, scope_of
from proxy.caller import Caller
from proxy.calls.decide import may_use_vendor
from proxy.outcomes import Denied
from proxy.request_context import RequestContext
from proxy.sessions.client_session import ClientSession, SessionEnded


async def admit(context: RequestContext, rule: Rule, vendor: Vendor | None = None) -> tuple[Admission, Caller]:
    """Count the request; returns the caller as it is now. Raises: InvalidBearer; DatabaseUnavailable; SessionEnded.

    Writes `context.admission`, which refusals show too, and `context.cache_epoch`. Spec: §8 · D20, D21
    """
    caller = context.caller
    # One round trip for both: the epoch of kept results is read with those of the caller.
    results = None if vendor is None else _results_epoch(caller, vendor)
    names = caller.epoch_names if results is None else (*caller.epoch_names, results)
    if context.session is not None:
        names = (*names, context.session.epoch)
    admission = await context.runtime.store.admit(rule, caller.principal.subject, names)
    context.admission = admission
    current = admission.epochs
    if context.session is not None and current is not None:
        current = await _without_session(context, context.session, current)
    if results is not None and current is not None:
        context.cache_epoch, current = (results, current[-1]), current[:-1]
    # Reloads the caller if an epoch has changed, and raises InvalidBearer if the right is gone.
    return admission, await context.caller_source.revalidated(context.bearer, caller, current)


async def _without_session(context: RequestContext, session: ClientSession, epochs: tuple[str, ...]) -> tuple[str, ...]:
    """The epochs before the session's. Writes `context.session_state`. Raises: SessionEnded."""
    context.session_state = await context.runtime.session_states.at(session, epochs[-1])
    if context.session_state.is_ended:
        raise SessionEnded
    return epochs[:-1]


def _results_epoch(caller: Caller, vendor: Vendor) -> str | None:
    # Decided for a caller that is not confirmed yet. If it changes, the name differs and the value is not used.
    credential = may_use_vendor(caller, vendor)
    if isinstance(credential, Denied):
        return None
    return epoch_name(caller.principal.org_id, scope_of(caller.principal, credential), vendor.slug)
