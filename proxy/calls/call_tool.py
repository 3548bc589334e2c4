"""The pipeline of a tool call, for MCP, per-vendor MCP and CLI.

admit (limit, epochs) > find the tool > decide > record the intent of a writing call > send > record the outcome.
While audit rows cannot be committed nothing is sent: no answer may leave without its row.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Any

import structlog
from django.conf import settings

from audit.writer import AuditUnavailable
from gateway.catalog.vendor import Vendor
from gateway.coordination.store import CoordinationUnavailable
from oauth_ext.bearer import InvalidBearer
from proxy.cache.result_cache import Answer
from proxy.caller_cache import DatabaseUnavailable
from proxy.calls import caching, call_audit
from proxy.calls.admit import admit
from proxy.calls.decide import may_call_tool
from proxy.calls.find_tool import FoundTool, NotFound, find_at_vendor, find_by_exposed_name
from proxy.outcomes import (
    BadArguments,
    Broken,
    CacheStatus,
    ClientClosed,
    Delivered,
    Denial,
    Denied,
    Failed,
    Outcome,
    RateLimited,
    VendorError,
)
from proxy.progress_relay import ProgressRelay
from proxy.protocol import cli_schema, replies
from proxy.request_context import Exchange
from proxy.vendors.errors import VendorProblem
from proxy.vendors.send import send_request

log = structlog.get_logger(__name__)
FIND_DEADLINE_S = 15.0  # to open a session and list the vendor's tools
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


async def call_tool(exchange: Exchange, asked: ToolCall) -> Outcome:
    """Runs one call until its audit row is committed. Internal errors are outcomes. Raises: FAIL_CLOSED."""
    vendor_slug = asked.vendor.slug if asked.vendor else ""
    exchange.cache = CacheStatus.BYPASS  # a batch has several calls in one exchange
    row: call_audit.OpenCall | None = None
    outcome: Outcome
    try:
        exchange.runtime.audit.refuse_during_outage()
        with exchange.timing.auth:
            admission = await admit(exchange, settings.TOOL_CALLS, asked.vendor if asked.cli else None)
        if not admission.allowed:
            await call_audit.record_rate_limited(exchange, vendor=vendor_slug, tool=asked.name)
            return RateLimited(admission.retry_after_s)
        row = call_audit.open_record(vendor=vendor_slug, tool=asked.name)
        found = BadArguments(asked.fault) if asked.fault else await _find(exchange, asked)
        if isinstance(found, FoundTool):
            call_audit.about_tool(row, found)
            outcome = await _decide_and_send(exchange, asked, found, row)
        else:
            outcome = found
    except asyncio.CancelledError:
        if row is not None and (exchange.client_disconnected or (asked.relay is not None and asked.relay.is_closed)):
            await call_audit.record_outcome(exchange, row, ClientClosed())
        raise
    except FAIL_CLOSED:
        raise
    except Exception:
        log.exception("call failed", request_id=exchange.request_id, vendor=vendor_slug)
        row = row or call_audit.open_record(vendor=vendor_slug, tool=asked.name)
        outcome = Broken()
    await call_audit.record_outcome(exchange, row, outcome)
    return outcome


async def refuse_unknown_vendor(exchange: Exchange, slug: str, tool: str) -> Outcome:
    exchange.runtime.audit.refuse_during_outage()
    with exchange.timing.auth:
        # Counted and recorded like every refusal.
        admission = await admit(exchange, settings.TOOL_CALLS)
    if not admission.allowed:
        await call_audit.record_rate_limited(exchange, vendor=slug, tool=tool)
        return RateLimited(admission.retry_after_s)
    denied = Denied(Denial.UNKNOWN_VENDOR, "There are no credentials for this vendor.", slug)
    await call_audit.record_outcome(exchange, call_audit.open_record(vendor=slug, tool=tool), denied)
    return denied


async def _decide_and_send(exchange: Exchange, asked: ToolCall, found: FoundTool, row: call_audit.OpenCall) -> Outcome:
    denied = may_call_tool(exchange.caller, found.vendor, found.tool.vendor_name)
    if denied is not None:
        return denied
    arguments = asked.arguments
    if asked.cli:
        try:
            arguments = cli_schema.fold_dotted(dict(arguments), found.input_schema)
        except ValueError as fault:
            return BadArguments(str(fault))

    def send() -> Awaitable[Answer]:
        return _send(exchange, arguments, asked, found)

    if found.policy.read_only:
        # Unknown members of `_meta` may change the result, so such a call is not cached.
        keeps = found.policy.keeps_results and (asked.cli or found.policy.named) and not asked.meta
        return await caching.cached_read(exchange, found, arguments, send, keeps=keeps, shares=asked.relay is None)
    # A write is recorded before it is sent: if the process dies, the row remains.
    await call_audit.record_intent(exchange, row)
    return await caching.invalidating_write(exchange, found, send)


async def _find(exchange: Exchange, asked: ToolCall) -> FoundTool | NotFound:
    deadline = asyncio.get_running_loop().time() + FIND_DEADLINE_S
    if asked.vendor is None:
        return await find_by_exposed_name(exchange, asked.name, deadline=deadline)
    vendor = exchange.caller.catalog.get(asked.vendor.slug)  # current, after admission
    if vendor is None:
        return Denied(Denial.UNKNOWN_VENDOR, "There are no credentials for this vendor.", asked.vendor.slug)
    return await find_at_vendor(exchange, vendor, asked.name, cli=asked.cli, deadline=deadline)


async def _send(exchange: Exchange, arguments: Mapping[str, Any], asked: ToolCall, found: FoundTool) -> Answer:
    deadline = asyncio.get_running_loop().time() + found.vendor.timeout_seconds
    params: dict[str, Any] = {"name": found.tool.vendor_name, "arguments": arguments}
    if asked.meta:
        params["_meta"] = asked.meta
    try:
        answer = await send_request(
            exchange.runtime.pool,
            found.destination,
            "tools/call",
            params,
            deadline=deadline,
            timing=exchange.timing,
            relay=asked.relay,
            is_repeatable=found.policy.read_only,
        )
    except VendorProblem as problem:
        return Failed(found.vendor.slug, problem.fault, problem.detail, problem.retry_after_s)
    if isinstance(answer, replies.VendorResult):
        return Delivered(answer.raw_result, answer.is_error)
    return VendorError(answer.raw_error, answer.message)
