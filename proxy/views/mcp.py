"""POST /v1/mcp and POST /v1/:vendor/mcp: JSON-RPC. No process keeps a session: `mcp_sessions`.

`_serve` is the way of a request: open, checks on the head, body, one message or a batch, answer. Messages of the modern
revision go on in `modern_mcp`.

Spec: §4.15 · D105-D111
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from django.conf import settings
from django.http import HttpResponse
from django.http.response import HttpResponseBase

import gateway
from audit.call_status import CallSource
from gateway.catalog.vendor import Vendor
from gateway.hot_path_request import HotPathRequest
from gateway.lib import strict_json
from gateway.lib.byte_budget import FREE_BYTES
from gateway.lib.shared_body import SharedBody
from gateway.middleware.body_parts import ClientDisconnected
from proxy.calls.ask_item import ItemCall, ask_item
from proxy.calls.call_tool import ToolCall, call_tool
from proxy.calls.list_tools import list_tools
from proxy.calls.subscribe_item import subscribe
from proxy.protocol import compact_tools, initialize, item_kinds, item_requests, jsonrpc, versions
from proxy.protocol.modern import revision
from proxy.protocol.modern.errors import Refusal
from proxy.protocol.modern.requests import batch_refusal
from proxy.request_context import RequestContext
from proxy.timing import Timing
from proxy.vendors import fair_scheduler
from proxy.views import change_streams, compact_calls, deprecation, mcp_items, mcp_sessions, modern_mcp, responses
from proxy.views.batches import answer_batch, read_batch
from proxy.views.body import read_json, require_json
from proxy.views.mcp_outcomes import render, render_item
from proxy.views.mcp_page import explain_endpoint, is_opened_in_browser
from proxy.views.mcp_requests import check_scope, item_call, tool_call, vendor_names, vendor_of
from proxy.views.progress_response import respond_with_progress
from proxy.views.route import Route, ServedRequest, count

Parts = tuple[bytes | SharedBody, ...]  # of one response
UNIFIED = Route(CallSource.MCP, "POST", "/v1/mcp", agent_keys=True, has_sessions=True, is_compact=None)
# The address says which list of tools it has.
COMPACT, WHOLE = replace(UNIFIED, is_compact=True), replace(UNIFIED, is_compact=False)


async def mcp(request: HotPathRequest) -> HttpResponseBase:
    if is_opened_in_browser(request):
        return explain_endpoint()
    if not compact_calls.is_asked_for(request):
        return await _serve_or_end(request, UNIFIED)
    return await _serve_or_end(request, WHOLE if compact_calls.is_whole_list_asked_for(request) else COMPACT)


async def vendor_mcp(request: HotPathRequest, vendor: str) -> HttpResponseBase:
    """Deprecated: the same pipeline for one vendor. Spec: D112"""
    path, headers = f"/v1/{vendor}/mcp", deprecation.headers()
    return await _serve_or_end(
        request,
        Route(
            *(CallSource.MCP, "POST", path),
            scope=f"mcp:{vendor}",
            vendor=vendor,
            has_sessions=True,
            headers=headers,
        ),
    )


async def _serve_or_end(request: HotPathRequest, route: Route) -> HttpResponseBase:
    if request.method in ("GET", "DELETE") and mcp_sessions.has_id(request):
        if request.method == "DELETE":
            return await mcp_sessions.end(request, route)
        return await change_streams.of_session(request, route)
    return await _serve(request, route)


async def _serve(request: HotPathRequest, route: Route) -> HttpResponseBase:
    served = ServedRequest(request, route)
    try:
        context = await served.open()
        if context is None:
            return served.preflight()
        vendor = vendor_of(context, route)
        if vendor is None and route.is_compact is not None:
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


async def _dispatch(
    context: RequestContext, request: HotPathRequest, route: Route, vendor: Vendor | None
) -> HttpResponseBase:
    header = request.META.get("HTTP_MCP_PROTOCOL_VERSION")
    try:
        body = await read_json(context, request)
    except strict_json.StrictJSONError as fault:
        text = f"Parse error: {fault}"
        if revision.is_modern_body(None, header):
            return modern_mcp.refused(Refusal(None, 400, jsonrpc.PARSE_ERROR, text))
        return responses.json_response(jsonrpc.error(None, jsonrpc.PARSE_ERROR, text), 400)
    if isinstance(body, list):
        if revision.is_modern_body(body, header):
            return modern_mcp.refused(batch_refusal())
        return await _serve_batch(context, request, route, vendor, body)
    message = jsonrpc.parse_message(body)
    if revision.is_modern(message, header):
        return await modern_mcp.answer(context, request, route, vendor, message)
    if not (isinstance(message, jsonrpc.Request) and message.method == "initialize"):
        mcp_sessions.open_session(context, request, route)
    if isinstance(message, jsonrpc.Invalid):
        status = 200 if message.code == jsonrpc.INVALID_PARAMS else 400
        return responses.json_response(jsonrpc.error(message.id, message.code, message.message), status)
    method = message.method if isinstance(message, jsonrpc.Request | jsonrpc.Notification) else None
    version = versions.check_header(header, method)
    if isinstance(version, versions.UnsupportedVersion):
        message_id = message.id if isinstance(message, jsonrpc.Request) else None
        return responses.json_response(version.body(message_id), 400)
    if isinstance(message, jsonrpc.Response) and context.session is not None:
        return await mcp_sessions.take_answers(context, [message])
    if not isinstance(message, jsonrpc.Request):
        return responses.accepted()
    call = _read_call(context, route, vendor, message, request.META.get("HTTP_ACCEPT"))
    if call is None:
        response = responses.json_parts(await _run_method(context, route, vendor, message))
        is_begin = message.method == "initialize"
        return mcp_sessions.begin(context, route, message.params, response) if is_begin else response
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
    mcp_sessions.open_session(context, request, route)
    if context.session is not None and all(isinstance(each, jsonrpc.Response) for each in messages):
        return await mcp_sessions.take_answers(context, messages)

    async def run_entry(message: jsonrpc.Request, size: int) -> bytes:
        # Each entry has its own times and bytes in its audit row.
        batch_timing, context.timing, context.request_bytes = context.timing, Timing(), size
        try:
            call = _read_call(context, route, vendor, message)
            if call is None:
                return b"".join(map(bytes, await _run_method(context, route, vendor, message)))
            return await _run_call(context, route, message.id, call)
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


def _read_call(
    context: RequestContext, route: Route, vendor: Vendor | None, message: jsonrpc.Request, accept: str | None = None
) -> ToolCall | ItemCall | None:
    """None for a request that is no call of a vendor."""
    if message.method == "tools/call":
        is_compact = compact_calls.applies(context, route)
        params = compact_tools.unwrapped(message.params) if is_compact else message.params
        is_own = is_compact and compact_tools.is_own(params)
        return None if is_own else tool_call(context, vendor, params, accept)
    has_updates = context.session is not None and message.method in item_kinds.SUBSCRIPTIONS
    if has_updates or message.method in item_kinds.CALLS:
        return item_call(context, vendor, message.method, message.params, accept)
    return None


async def _run_method(context: RequestContext, route: Route, vendor: Vendor | None, message: jsonrpc.Request) -> Parts:
    """The response to a request that is no tool call."""
    await count(context)
    if vendor is not None:
        check_scope(context, route, vendor)
    if message.method == "initialize":
        return (jsonrpc.result(message.id, await _initialize(context, route, vendor, message.params)),)
    if message.method == "ping":
        return (jsonrpc.result_bytes(message.id, b"{}"),)
    if message.method == "logging/setLevel":
        return (await mcp_sessions.set_log_level(context, message),)
    if message.method == "tools/list":
        return await _list(context, route, vendor, message)
    if message.method in item_kinds.LISTS:
        return await _list_items(context, vendor, message)
    if message.method == "tools/call":
        return (jsonrpc.result(message.id, await compact_calls.answer(context, message.params)),)
    return (jsonrpc.error(message.id, jsonrpc.METHOD_NOT_FOUND, "Method not found"),)


async def _run_call(
    context: RequestContext, route: Route, message_id: jsonrpc.MessageId, call: ToolCall | ItemCall
) -> bytes:
    if isinstance(call, ItemCall):
        run = subscribe if call.method in item_kinds.SUBSCRIPTIONS else ask_item
        item = await run(context, call)
        asked = mcp_sessions.page_to_open(context, message_id, item)
        return asked or render_item(route, message_id, item, unknown_address=item_requests.RESOURCE_NOT_FOUND)
    outcome = await call_tool(context, call)
    return mcp_sessions.page_to_open(context, message_id, outcome) or render(route, message_id, outcome)


async def _initialize(
    context: RequestContext, route: Route, vendor: Vendor | None, params: dict[str, Any]
) -> dict[str, Any]:
    names, why_none = vendor_names(context, vendor)
    has_session = mcp_sessions.begins(params)
    is_compact = compact_calls.applies(context, route)
    capabilities = await mcp_items.capabilities(context, vendor, tells_changes=has_session, is_compact=is_compact)
    if has_session:
        capabilities["logging"] = {}
    return initialize.initialize_result(
        params.get("protocolVersion"),
        capabilities=capabilities,
        base_url=settings.BASE_URL,
        vendor_names=names,
        gateway_version=gateway.__version__,
        why_none=why_none,
        how_to_find=compact_tools.INSTRUCTIONS if is_compact else "",
    )


async def _list_items(context: RequestContext, vendor: Vendor | None, message: jsonrpc.Request) -> Parts:
    if message.params.get("cursor") is not None:
        return (jsonrpc.error(message.id, jsonrpc.INVALID_PARAMS, mcp_items.ONE_PAGE),)
    found = await mcp_items.listed(context, vendor, message.method)
    if not found.is_offered:
        return (jsonrpc.error(message.id, jsonrpc.METHOD_NOT_FOUND, "Method not found"),)
    meta = mcp_items.meta_of(found.unavailable)
    end = b',"_meta":%b}}' % mcp_items.encoded(meta) if meta else b"}}"
    return jsonrpc.result_head(message.id) + b"{", *mcp_items.members(message.method, found), end


async def _list(context: RequestContext, route: Route, vendor: Vendor | None, message: jsonrpc.Request) -> Parts:
    if message.params.get("cursor") is not None:
        return (jsonrpc.error(message.id, jsonrpc.INVALID_PARAMS, mcp_items.ONE_PAGE),)
    if compact_calls.applies(context, route):
        return (jsonrpc.result_bytes(message.id, b'{"tools":[%b]}' % compact_tools.LIST),)
    listed = await list_tools(context, [vendor] if vendor else None)
    meta = mcp_items.meta_of(listed.unavailable)
    end = b'],"_meta":%b}' % mcp_items.encoded(meta) if meta else b"]}"
    # The body is one object for all callers with the same tools: it is sent as it is, and not joined.
    return jsonrpc.result_head(message.id) + b'{"tools":[', listed.body, end + b"}"


def _check_accept(accept: str | None) -> None:
    if accept is None:
        return
    kinds = {part.partition(";")[0].strip().lower() for part in accept.split(",")}
    if not kinds & {"application/json", "text/event-stream", "*/*", "application/*", "text/*", ""}:
        raise responses.HttpError(406, "not_acceptable", "Accept application/json or text/event-stream.")
