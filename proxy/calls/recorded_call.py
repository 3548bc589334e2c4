"""The frame of every call: counted, run, recorded before its answer leaves, counted for the metrics.

While audit rows cannot be committed nothing is sent: no answer may leave without its row.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

import structlog
from django.conf import settings

from audit.pending_record import AuditUnavailable
from gateway import draining
from gateway.catalog.vendor import Vendor
from gateway.coordination.store import CoordinationUnavailable
from oauth_ext.bearer import InvalidBearer
from proxy.calls import call_audit, call_figures
from proxy.calls.admit import admit
from proxy.calls.call_audit import OpenCall
from proxy.hot_path_database import DatabaseUnavailable
from proxy.outcomes import CacheStatus, ClientClosed, CutOff, InternalError, ItemOutcome, RateLimited
from proxy.progress_relay import ProgressRelay
from proxy.request_context import RequestContext
from proxy.sessions.client_session import SessionEnded

log = structlog.get_logger(__name__)
# These fail the whole request, with 401, 404 or 503, instead of becoming an outcome.
FAIL_CLOSED = (InvalidBearer, SessionEnded, DatabaseUnavailable, AuditUnavailable, CoordinationUnavailable)


class AskedCall(Protocol):
    """A call as requested."""

    @property
    def vendor(self) -> Vendor | None: ...
    @property
    def relay(self) -> ProgressRelay | None: ...
    @property
    def route(self) -> str: ...
    @property
    def is_cli(self) -> bool: ...
    def open_row(self) -> OpenCall: ...


CallT = TypeVar("CallT", bound=AskedCall)
OutcomeT = TypeVar("OutcomeT", bound=ItemOutcome)


async def run_recorded(
    context: RequestContext,
    call: CallT,
    work: Callable[[RequestContext, CallT, OpenCall], Awaitable[OutcomeT]],
) -> OutcomeT | RateLimited | InternalError:
    """Runs one call until its audit row is committed. Internal errors are outcomes. Raises: FAIL_CLOSED."""
    context.cache = CacheStatus.BYPASS  # a batch has several calls in one exchange
    slug = call.vendor.slug if call.vendor else ""
    row: OpenCall | None = None
    outcome: OutcomeT | RateLimited | InternalError
    try:
        refused = await admit_call(context, call.open_row, call.vendor if call.is_cli else None)
        if refused is not None:
            call_figures.count_outcome(context, call.route, refused, "denied", vendor=slug)
            return refused
        row = call.open_row()
        outcome = await work(context, call, row)
    except asyncio.CancelledError:
        if row is not None and (context.client_disconnected or (call.relay is not None and call.relay.is_closed)):
            await _record_end(context, call, row, ClientClosed())
        elif row is not None and draining.have_calls_ended():
            await _record_end(context, call, row, CutOff())
        raise
    except FAIL_CLOSED as fault:
        call_figures.count_failure(context, call.route, fault, vendor=slug if row is None else row.vendor)
        if row is not None and row.has_asked:  # the call was made, though nothing is known of its end
            with contextlib.suppress(AuditUnavailable):
                await call_audit.record_outcome(context, row, InternalError())
        raise
    except Exception:
        log.exception("call failed", request_id=context.request_id, vendor=slug)
        row = row or call.open_row()
        outcome = InternalError()
    try:
        status = await call_audit.record_outcome(context, row, outcome)
    except AuditUnavailable as fault:
        call_figures.count_failure(context, call.route, fault, vendor=row.vendor)
        raise
    call_figures.count_outcome(context, call.route, outcome, status, vendor=row.vendor, tool=row.known_tool)
    return outcome


async def admit_call(
    context: RequestContext, open_row: Callable[[], OpenCall], vendor: Vendor | None = None
) -> RateLimited | None:
    """Counts the call and writes `context.caller`; a call beyond the limit is recorded. `vendor`: as in `admit`."""
    context.runtime.audit.refuse_during_outage()
    with context.timing.auth:
        admission, context.caller = await admit(context, settings.TOOL_CALLS, vendor)
    if admission.allowed:
        return None
    await call_audit.record_rate_limited(context, open_row())
    return RateLimited(admission.retry_after_s)


async def _record_end(context: RequestContext, call: AskedCall, row: OpenCall, end: ClientClosed | CutOff) -> None:
    status = await call_audit.record_outcome(context, row, end)
    call_figures.count_outcome(context, call.route, end, status, vendor=row.vendor, tool=row.known_tool)
