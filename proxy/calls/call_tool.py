"""The pipeline of a tool call, for MCP, per-vendor MCP and CLI.

admit (limit, epochs) > find the tool > decide > record the intent of a writing call > send > record the outcome.
While audit rows cannot be committed nothing is sent: no answer may leave without its row.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import structlog
from django.conf import settings

from audit.pending_record import AuditUnavailable
from gateway import draining
from gateway.catalog.vendor import Vendor
from gateway.coordination.store import CoordinationUnavailable
from oauth_ext.bearer import InvalidBearer
from proxy.cache.result_cache import VendorOutcome
from proxy.calls import caching, call_audit, call_figures, request_state
from proxy.calls.admit import admit
from proxy.calls.decide import may_call_tool
from proxy.calls.find_tool import FoundTool, find_or_fetch_tool
from proxy.calls.open_destination import after_rejection
from proxy.hot_path_database import DatabaseUnavailable
from proxy.outcomes import (
    Asked,
    BadArguments,
    CacheStatus,
    ClientClosed,
    CutOff,
    Delivered,
    Denial,
    Denied,
    Failed,
    InternalError,
    Outcome,
    RateLimited,
    VendorError,
)
from proxy.progress_relay import ProgressRelay
from proxy.protocol import cli_schema, replies
from proxy.protocol.modern import input_required
from proxy.protocol.modern.input_required import Answers, InputRequired
from proxy.request_context import RequestContext
from proxy.vendors import fair_scheduler
from proxy.vendors.errors import VendorProblem
from proxy.vendors.send import send_request
from proxy.vendors.tool_request import ToolRequest

log = structlog.get_logger(__name__)
# These fail the whole request, with 401 or 503, instead of becoming an outcome.
FAIL_CLOSED = (InvalidBearer, DatabaseUnavailable, AuditUnavailable, CoordinationUnavailable)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call as requested."""

    name: str
    arguments: Mapping[str, Any]
    vendor: Vendor | None = None  # None at the unified endpoint: the name's prefix decides
    cli: bool = False  # accepts command spellings
    meta: Mapping[str, Any] | None = None
    relay: ProgressRelay | None = None  # asks the vendor for progress; the caller may leave during the call
    fault: str = ""  # why the request is invalid: it is counted and recorded, and not sent
    # What in the request's headers contradicts the arguments, for a tool's JSON as listed; None: nothing.
    contradiction: Callable[[bytes], str | None] | None = None
    capabilities: Mapping[str, Any] | None = None  # of a caller that a vendor may ask something; None: it cannot be
    answers: Answers | None = None  # of a retry, to what the vendor asked

    @property
    def route(self) -> str:
        """Its name in metrics. Contract: 7"""
        return "cli" if self.cli else "mcp" if self.vendor is None else "vendor_mcp"


async def call_tool(context: RequestContext, call: ToolCall) -> Outcome:
    """Runs one call until its audit row is committed. Internal errors are outcomes. Raises: FAIL_CLOSED."""
    vendor_slug = call.vendor.slug if call.vendor else ""
    tool = ""  # known to its vendor
    context.cache = CacheStatus.BYPASS  # a batch has several calls in one exchange
    row: call_audit.OpenCall | None = None
    outcome: Outcome
    try:
        refused = await _admit_call(context, vendor_slug, call.name, call.vendor if call.cli else None)
        if refused is not None:
            call_figures.count_outcome(context, call.route, refused, "denied", vendor=vendor_slug)
            return refused
        row = call_audit.open_record(vendor=vendor_slug, tool=call.name)
        found = (
            BadArguments(call.fault)
            if call.fault
            else await find_or_fetch_tool(context, call.name, call.vendor, cli=call.cli)
        )
        if isinstance(found, FoundTool):
            call_audit.set_tool(row, found)
            tool = row.tool
            outcome = await _decide_and_send(context, call, found, row)
            if not isinstance(outcome, Denied):
                context.runtime.caller_cache.note_credential(found.credential.id)
        else:
            outcome = found
    except asyncio.CancelledError:
        if row is not None and (context.client_disconnected or (call.relay is not None and call.relay.is_closed)):
            await _record_end(context, call, row, tool, ClientClosed())
        elif row is not None and draining.have_calls_ended():
            await _record_end(context, call, row, tool, CutOff())
        raise
    except FAIL_CLOSED as fault:
        call_figures.count_failure(context, call.route, fault, vendor=vendor_slug if row is None else row.vendor)
        raise
    except Exception:
        log.exception("call failed", request_id=context.request_id, vendor=vendor_slug)
        row = row or call_audit.open_record(vendor=vendor_slug, tool=call.name)
        outcome = InternalError()
    try:
        status = await call_audit.record_outcome(context, row, outcome)
    except AuditUnavailable as fault:
        call_figures.count_failure(context, call.route, fault, vendor=row.vendor)
        raise
    call_figures.count_outcome(context, call.route, outcome, status, vendor=row.vendor, tool=tool)
    return outcome


async def _record_end(
    context: RequestContext, call: ToolCall, row: call_audit.OpenCall, tool: str, end: ClientClosed | CutOff
) -> None:
    status = await call_audit.record_outcome(context, row, end)
    call_figures.count_outcome(context, call.route, end, status, vendor=row.vendor, tool=tool)


async def refuse_unknown_vendor(context: RequestContext, slug: str, tool: str) -> Outcome:
    """Counted and recorded like every refusal."""
    status = "denied"
    try:
        outcome: Outcome | None = await _admit_call(context, slug, tool)
        if outcome is None:
            outcome = Denied(Denial.UNKNOWN_VENDOR, "There are no credentials for this vendor.", slug)
            status = await call_audit.record_outcome(context, call_audit.open_record(vendor=slug, tool=tool), outcome)
    except FAIL_CLOSED as fault:
        call_figures.count_failure(context, "cli", fault, vendor=slug)
        raise
    call_figures.count_outcome(context, "cli", outcome, status, vendor=slug)
    return outcome


async def _admit_call(
    context: RequestContext, slug: str, tool: str, vendor: Vendor | None = None
) -> RateLimited | None:
    """Counts the call and writes `context.caller`; a call beyond the limit is recorded. `vendor`: as in `admit`."""
    context.runtime.audit.refuse_during_outage()
    with context.timing.auth:
        admission, context.caller = await admit(context, settings.TOOL_CALLS, vendor)
    if admission.allowed:
        return None
    await call_audit.record_rate_limited(context, vendor=slug, tool=tool)
    return RateLimited(admission.retry_after_s)


async def _decide_and_send(
    context: RequestContext, call: ToolCall, found: FoundTool, row: call_audit.OpenCall
) -> Outcome:
    caller = context.caller
    denied = may_call_tool(
        *(caller.principal, caller.organization, found.vendor, found.tool.vendor_name),
        is_read_only=found.policy.read_only,
    )
    if denied is not None:
        return denied
    if call.contradiction is not None:
        listed = found.listed.encoded[found.tool.exposed_name]
        check = partial(call.contradiction, listed)
        text = await fair_scheduler.run_small_inline(caller.principal.org_id, check, len(listed))
        if text is not None:
            return BadArguments(text, is_header_mismatch=True)
    arguments = call.arguments
    if call.cli and any("." in name for name in arguments):
        work = partial(_fold_dotted, dict(arguments), found)
        size_bytes = len(found.listed.definitions[found.tool.vendor_name])
        try:
            arguments = await fair_scheduler.run_small_inline(caller.principal.org_id, work, size_bytes)
        except ValueError as fault:
            return BadArguments(str(fault))

    if call.answers is not None:
        try:
            state = request_state.opened(caller.principal, found, arguments, call.answers.state or "")
        except request_state.InvalidState:
            return BadArguments(input_required.REFUSED)
        call = replace(call, answers=Answers(state, call.answers.responses))
    send = partial(_send, context, arguments, call, found)
    if found.policy.read_only:
        # Unknown members of `_meta` may change the result, so such a call is not cached.
        is_plain = not call.meta and call.answers is None
        if not is_plain or not found.policy.is_cacheable or not (call.cli or found.policy.named):
            return await caching.uncached_read(context, found, send)
        outcome, context.cache = await caching.cached_read(
            context, found, arguments, send, is_shareable=call.relay is None and not call.capabilities
        )
        return outcome
    # A write is recorded before it is sent: if the process dies, the row remains.
    await call_audit.record_intent(context, row)
    return await caching.invalidating_write(context, found, send)


def _fold_dotted(arguments: dict[str, Any], found: FoundTool) -> dict[str, Any]:
    return cli_schema.fold_dotted(arguments, found.listed.definition(found.tool.vendor_name).get("inputSchema"))


async def _send(
    context: RequestContext,
    arguments: Mapping[str, Any],
    call: ToolCall,
    found: FoundTool,
    *,
    is_repeated: bool = False,
) -> VendorOutcome:
    deadline = asyncio.get_running_loop().time() + found.vendor.timeout_seconds
    params: dict[str, Any] = {"name": found.tool.vendor_name, "arguments": arguments}
    meta = call.meta if context.trace is None else {**(call.meta or {}), **context.trace.for_vendor()}
    if meta:
        params["_meta"] = meta
    if call.answers is not None:
        params |= {"inputResponses": call.answers.responses} if call.answers.responses is not None else {}
        params |= {"requestState": call.answers.state} if call.answers.state is not None else {}
    definition = found.listed.definitions[found.tool.vendor_name]
    try:
        reply = await send_request(
            context.runtime.pool,
            found.destination,
            "tools/call",
            params,
            deadline=deadline,
            timing=context.timing,
            relay=call.relay,
            is_repeatable=found.policy.read_only,
            tool=ToolRequest(definition, call.capabilities, call.answers is not None),
        )
    except VendorProblem as problem:
        if found.credential.is_connection and problem.is_rejection and not is_repeated:
            again = await after_rejection(context, found.vendor, found.credential)
            if isinstance(again, Denied):
                return again
            if again is not None:
                found = replace(found, credential=again[0], destination=again[1])
                return await _send(context, arguments, call, found, is_repeated=True)
        return Failed(found.vendor.slug, problem.fault, problem.detail, problem.retry_after_s)
    if isinstance(reply, replies.VendorResult):
        if reply.is_error and isinstance(reply, InputRequired):
            return _asked(context, arguments, call, found, reply)
        return Delivered(reply.raw_result, reply.is_error)
    return VendorError(reply.raw_error, reply.message)


def _asked(
    context: RequestContext, arguments: Mapping[str, Any], call: ToolCall, found: FoundTool, reply: InputRequired
) -> Delivered | Asked:
    """The vendor's question for a caller that can answer it; for others a failed result that says what was asked."""
    in_vain = input_required.asked_in_vain(reply, call.capabilities)
    if in_vain:
        return Delivered(input_required.failed(in_vain, reply), is_error=True)
    state = request_state.sealed(context.caller.principal, found, arguments, reply.state)
    return Asked(input_required.result(reply, state), len(reply.raw_result))
