"""POST /v1/mcp and POST /v1/:vendor/mcp: JSON-RPC, stateless; no session id is issued.

`_serve` is the way of a request: open, checks on the head, body, one message or a batch, answer.

Spec: §4.15 · D105-D111
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import msgspec
from django.conf import settings
from django.http import HttpResponse
from django.http.response import HttpResponseBase

import gateway
from audit.call_status import CallSource
from gateway.catalog.vendor import TOOL_NAME_MAX_CHARACTERS, Vendor
from gateway.hot_path_request import HotPathRequest
from gateway.lib import error_help, strict_json
from gateway.lib.byte_budget import FREE_BYTES
from gateway.lib.sentences import plain
from gateway.lib.shared_body import SharedBody
from gateway.middleware.body_parts import ClientDisconnected
from proxy.calls.call_tool import ToolCall, call_tool
from proxy.calls.decide import may_use_vendor
from proxy.calls.list_tools import list_tools, may_list
from proxy.calls.no_access_reasons import why_no_vendor
from proxy.outcomes import (
    BadArguments,
    Delivered,
    Denial,
    Denied,
    Failed,
    InternalError,
    Outcome,
    RateLimited,
    UnknownTool,
    VendorError,
)
from proxy.progress_relay import ProgressRelay
from proxy.protocol import compact_tools, initialize, jsonrpc, progress, versions
from proxy.protocol.trace_context import take_parent
from proxy.request_context import RequestContext
from proxy.timing import Timing
from proxy.vendors import fair_scheduler
from proxy.views import compact_calls, deprecation, responses
from proxy.views.batches import answer_batch, read_batch
from proxy.views.body import read_json, require_json
from proxy.views.mcp_page import explain_endpoint, is_opened_in_browser
from proxy.views.progress_response import accepts_events, respond_with_progress
from proxy.views.route import Route, ServedRequest, count

Parts = tuple[bytes | SharedBody, ...]  # of one response
UNIFIED = Route(CallSource.MCP, "POST", "/v1/mcp", agent_keys=True)
COMPACT = replace(UNIFIED, is_compact=True)


async def mcp(request: HotPathRequest) -> HttpResponseBase:
    if is_opened_in_browser(request):
        return explain_endpoint()
    return await _serve(request, COMPACT if compact_calls.is_asked_for(request) else UNIFIED)


async def vendor_mcp(request: HotPathRequest, vendor: str) -> HttpResponseBase:
    """Deprecated: the same pipeline for one vendor. Spec: D112"""
    path, headers = f"/v1/{vendor}/mcp", deprecation.headers()
    return await _serve(
        request, Route(CallSource.MCP, "POST", path, scope=f"mcp:{vendor}", vendor=vendor, headers=headers)
    )


async def _serve(request: HotPathRequest, route: Route) -> HttpResponseBase:
    served = ServedRequest(request, route)
    try:
        context = await served.open()
        if context is None:
            return served.preflight()
        vendor = _vendor_of(context, route)
        if route.is_compact:
            compact_calls.check_query(request)
        require_json(request)
        _check_accept(request.META.get("HTTP_ACCEPT"))
        response = await _dispatch(context, request, route, vendor)
        if context.admission is None:  # a notification or an unreadable message: it counts too
            await count(context)
    except ClientDisconnected:
        raise
    except Exception as fault:
        response = await served.refusal(fault)
    return served.finish(response)


def _vendor_of(context: RequestContext, route: Route) -> Vendor | None:
    """None at the unified endpoint. Raises: HttpError with 404 or 410."""
    if route.vendor is None:
        return None
    deprecation.refuse_when_gone()
    known = context.caller.catalog.get(route.vendor)
    if known is None:
        raise responses.HttpError(404, "not_found", "There is no such vendor.")
    return known


async def _dispatch(
    context: RequestContext, request: HotPathRequest, route: Route, vendor: Vendor | None
) -> HttpResponseBase:
    try:
        body = await read_json(context, request)
    except strict_json.StrictJSONError as fault:
        return responses.json_response(jsonrpc.error(None, jsonrpc.PARSE_ERROR, f"Parse error: {fault}"), 400)
    if isinstance(body, list):
        return await _serve_batch(context, request, route, vendor, body)
    message = jsonrpc.parse_message(body)
    if isinstance(message, jsonrpc.Invalid):
        status = 200 if message.code == jsonrpc.INVALID_PARAMS else 400
        return responses.json_response(jsonrpc.error(message.id, message.code, message.message), status)
    method = message.method if isinstance(message, jsonrpc.Request | jsonrpc.Notification) else None
    version = versions.check_header(request.META.get("HTTP_MCP_PROTOCOL_VERSION"), method)
    if isinstance(version, versions.UnsupportedVersion):
        message_id = message.id if isinstance(message, jsonrpc.Request) else None
        return responses.json_response(version.body(message_id), 400)
    if not isinstance(message, jsonrpc.Request):
        return responses.accepted()
    if route.is_compact:
        message = compact_tools.unwrapped(message)
    if method != "tools/call" or (route.is_compact and compact_tools.is_own(message)):
        return responses.json_parts(await _run_method(context, route, vendor, message))
    call = _tool_call(context, vendor, message, request.META.get("HTTP_ACCEPT"))
    answer = _run_call(context, route, message.id, call)
    if call.relay is None:
        return responses.json_response(await answer)
    return await respond_with_progress(message.id, call.relay, answer)


async def _serve_batch(
    context: RequestContext, request: HotPathRequest, route: Route, vendor: Vendor | None, body: list[Any]
) -> HttpResponse:
    version = versions.check_header(request.META.get("HTTP_MCP_PROTOCOL_VERSION"), None)
    if isinstance(version, versions.UnsupportedVersion):
        return responses.json_response(version.body(None), 400)
    messages = read_batch(body, version)
    if isinstance(messages, jsonrpc.Invalid):
        return responses.json_response(jsonrpc.error(messages.id, messages.code, messages.message), 400)

    async def run_entry(message: jsonrpc.Request, size: int) -> bytes:
        # Each entry has its own times and bytes in its audit row.
        batch_timing, context.timing, context.request_bytes = context.timing, Timing(), size
        try:
            if route.is_compact:
                message = compact_tools.unwrapped(message)
            if message.method != "tools/call" or (route.is_compact and compact_tools.is_own(message)):
                return b"".join(map(bytes, await _run_method(context, route, vendor, message)))
            return await _run_call(context, route, message.id, _tool_call(context, vendor, message))
        finally:
            batch_timing.add(context.timing)
            context.timing = batch_timing

    def count_bytes(size: int) -> None:
        if size > FREE_BYTES:
            request.count_response_bytes(size)

    sent = request.body
    # Finding the entries of a large batch takes long: beside the event loop.
    work = partial(strict_json.entry_sizes, sent)
    sizes = await fair_scheduler.run_small_inline(context.caller.principal.org_id, work, len(sent))
    return await answer_batch(zip(messages, sizes, strict=True), run_entry, count_bytes)


async def _run_method(context: RequestContext, route: Route, vendor: Vendor | None, message: jsonrpc.Request) -> Parts:
    """The response to a request that is no tool call."""
    await count(context)
    if vendor is not None:
        _check_scope(context, route, vendor)
    if message.method == "initialize":
        return (jsonrpc.result(message.id, _initialize(context, route, vendor, message.params)),)
    if message.method == "ping":
        return (jsonrpc.result_bytes(message.id, b"{}"),)
    if message.method == "tools/list":
        return await _list(context, route, vendor, message)
    if message.method == "tools/call":
        return (jsonrpc.result(message.id, await compact_calls.answer(context, message)),)
    return (jsonrpc.error(message.id, jsonrpc.METHOD_NOT_FOUND, "Method not found"),)


def _tool_call(
    context: RequestContext, vendor: Vendor | None, message: jsonrpc.Request, accept: str | None = None
) -> ToolCall:
    """With a relay if the caller asks for progress and accepts event streams."""
    name, arguments, fault = message.params.get("name"), message.params.get("arguments"), ""
    if not isinstance(name, str) or not name or len(name) > TOOL_NAME_MAX_CHARACTERS:
        name, fault = "", "params.name must be a tool name"
    elif not isinstance(arguments, dict | None):
        fault = "params.arguments must be an object"
    # The vendor does not get the caller's token: callers share sessions, and their tokens may be equal.
    token, meta = progress.split_meta(message.params.get("_meta"))
    if context.trace is not None and meta is not None:
        context.trace.adopt_late(take_parent(meta))  # the vendor gets ours in its place
    relay = ProgressRelay(token) if token is not None and accepts_events(accept) else None
    return ToolCall(name, {} if fault else arguments or {}, vendor=vendor, meta=meta or None, relay=relay, fault=fault)


async def _run_call(context: RequestContext, route: Route, message_id: jsonrpc.MessageId, call: ToolCall) -> bytes:
    return _render(route, message_id, await call_tool(context, call))


def _check_scope(context: RequestContext, route: Route, vendor: Vendor) -> None:
    """Refuses a token of another vendor from the first request on. Raises: HttpError with 403."""
    verdict = may_use_vendor(context.caller, vendor)
    if isinstance(verdict, Denied) and verdict.denial is Denial.SCOPE:
        raise responses.insufficient_scope(route.resource_path, verdict.scope_needed, verdict.text)


def _initialize(context: RequestContext, route: Route, vendor: Vendor | None, params: dict[str, Any]) -> dict[str, Any]:
    vendors = [vendor] if vendor else context.caller.catalog.all()
    names = [one.name for one in vendors if may_list(context, one)]
    return initialize.initialize_result(
        params.get("protocolVersion"),
        base_url=settings.BASE_URL,
        vendor_names=names,
        gateway_version=gateway.__version__,
        why_none="" if names else why_no_vendor(context.caller, vendors),
        how_to_find=compact_tools.INSTRUCTIONS if route.is_compact else "",
    )


async def _list(context: RequestContext, route: Route, vendor: Vendor | None, message: jsonrpc.Request) -> Parts:
    if message.params.get("cursor") is not None:
        return (jsonrpc.error(message.id, jsonrpc.INVALID_PARAMS, "Unknown cursor: the list has one page"),)
    if route.is_compact:
        return (jsonrpc.result_bytes(message.id, b'{"tools":[%b]}' % compact_tools.LIST),)
    listed = await list_tools(context, [vendor] if vendor else None)
    # The result of tools/list has no member of its own for the reasons.
    meta = msgspec.json.encode({"gateway/unavailable": listed.unavailable}, enc_hook=plain)
    end = b'],"_meta":%b}' % meta if listed.unavailable else b"]}"
    # The body is one object for all callers with the same tools: it is sent as it is, and not joined.
    return jsonrpc.result_head(message.id) + b'{"tools":[', listed.body, end + b"}"


def _render(route: Route, message_id: jsonrpc.MessageId, outcome: Outcome) -> bytes:
    """Spec: D105"""
    if isinstance(outcome, Delivered):
        return jsonrpc.result_bytes(message_id, outcome.raw_result)
    if isinstance(outcome, VendorError):
        return jsonrpc.error_bytes(message_id, outcome.raw_error)
    if isinstance(outcome, RateLimited):
        raise responses.rate_limited(outcome.retry_after_s)
    if isinstance(outcome, UnknownTool):
        return jsonrpc.error(message_id, jsonrpc.INVALID_PARAMS, f"Unknown tool: {outcome.name}")
    if isinstance(outcome, BadArguments):
        return jsonrpc.error(message_id, jsonrpc.INVALID_PARAMS, outcome.text)
    if isinstance(outcome, Failed):
        data: dict[str, Any] = {"vendor": outcome.vendor, "reason": outcome.fault.value}
        if outcome.retry_after_s is not None:
            data["retryAfter"] = outcome.retry_after_s
        return jsonrpc.error(message_id, jsonrpc.INTERNAL_ERROR, outcome.detail, data)
    if isinstance(outcome, InternalError):
        data = {"reason": "internal_error"}
        return jsonrpc.error(message_id, jsonrpc.INTERNAL_ERROR, responses.INTERNAL_ERROR, data)
    return _denied(route, message_id, outcome)


def _denied(route: Route, message_id: jsonrpc.MessageId, denied: Denied) -> bytes:
    if denied.denial is Denial.SCOPE:
        raise responses.insufficient_scope(route.resource_path, denied.scope_needed, denied.text)
    # A model can explain other rules to its user.
    return jsonrpc.result(
        message_id,
        {
            "content": [{"type": "text", "text": responses.denial_text(denied)}],
            "isError": True,
            "_meta": {"gateway/help": error_help.address(denied.denial.value)},
        },
    )


def _check_accept(accept: str | None) -> None:
    if accept is None:
        return
    kinds = {part.partition(";")[0].strip().lower() for part in accept.split(",")}
    if not kinds & {"application/json", "text/event-stream", "*/*", "application/*", "text/*", ""}:
        raise responses.HttpError(406, "not_acceptable", "Accept application/json or text/event-stream.")
