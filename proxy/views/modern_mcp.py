"""The modern revision at /v1/mcp and /v1/:vendor/mcp: one request, one answer, nothing kept between them.

Spec: MCP 2026-07-28 · D159 · docs/decisions/0102
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, TypeVar

from django.conf import settings
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from msgspec.structs import replace

import gateway
from gateway.catalog.vendor import Vendor
from gateway.hot_path_request import HotPathRequest
from proxy.calls.ask_item import ItemCall, ask_item
from proxy.calls.call_tool import ToolCall, call_tool
from proxy.calls.list_tools import list_tools
from proxy.calls.seen_lists import Listed
from proxy.calls.subscribe_item import Confirmed, confirm
from proxy.outcomes import Asked, BadArguments, Delivered, Denied, Outcome, UnknownItem, VendorError
from proxy.progress_relay import ProgressRelay
from proxy.protocol import compact_tools, initialize, item_kinds, jsonrpc, progress, questions
from proxy.protocol.modern import (
    elicitation,
    errors,
    headers,
    input_required,
    param_headers,
    results,
    subscriptions,
)
from proxy.protocol.modern.errors import Refusal
from proxy.protocol.modern.headers import McpHeaders
from proxy.protocol.modern.requests import ModernRequest, read_message
from proxy.request_context import RequestContext
from proxy.vendors import fair_scheduler
from proxy.views import change_streams, compact_calls, mcp_items, mcp_outcomes, responses
from proxy.views.mcp_requests import check_scope, item_call, tool_call, vendor_names
from proxy.views.progress_response import accepts_events, respond_with_progress
from proxy.views.route import Route, count

CallT = TypeVar("CallT", ToolCall, ItemCall)
MAX_ADDRESSES_READ = 1_000  # of one subscription
_NOTHING = progress.Wanted(None, None)


async def answer(
    context: RequestContext, request: HotPathRequest, route: Route, vendor: Vendor | None, message: jsonrpc.Message
) -> HttpResponseBase:
    """Raises: as the earlier versions' methods."""
    said = headers.read(request.scope["headers"])
    asked = read_message(message, said)
    if asked is None:
        return responses.accepted()
    if isinstance(asked, Refusal):
        return refused(asked)
    accept = request.META.get("HTTP_ACCEPT")
    is_compact = compact_calls.applies(context, route)
    params = compact_tools.unwrapped(asked.params) if is_compact else asked.params
    if asked.method == "tools/call" and not (is_compact and compact_tools.is_own(params)):
        call = _read_call(asked, tool_call(context, vendor, params), said, accept)
        # A client mirrors arguments into headers by the definition of the tool that it calls, here call_tool.
        if params is not asked.params:
            call = replace(call, contradiction=None)
        return await _answer(asked, call.relay, _run_tool(context, route, asked, call))
    if asked.method in item_kinds.CALLS:
        item = _read_item(asked, item_call(context, vendor, asked.method, asked.params), accept)
        return await _answer(asked, item.relay, _run_item(context, route, asked, item))
    await count(context)
    if vendor is not None:
        check_scope(context, route, vendor)
    if asked.method == "server/discover":
        return responses.json_response(jsonrpc.result(asked.id, await _discovered(context, route, vendor)))
    if asked.method in item_kinds.LISTS:
        return await _list_items(context, vendor, asked)
    if asked.method == "tools/list":
        return await _list(context, route, vendor, asked)
    if asked.method == "tools/call":
        result = await compact_calls.answer(context, asked.params)
        return responses.json_response(jsonrpc.result(asked.id, results.complete(result, _server())))
    if asked.method == "subscriptions/listen":
        return await _listen(context, route, vendor, asked, accept)
    return refused(errors.method_not_found(asked.id))


def refused(refusal: Refusal) -> HttpResponse:
    return responses.json_response(refusal.body, refusal.status)


async def _discovered(context: RequestContext, route: Route, vendor: Vendor | None) -> dict[str, object]:
    is_compact = compact_calls.applies(context, route)
    how_to_find = compact_tools.INSTRUCTIONS if is_compact else ""
    server = initialize.server_info(settings.BASE_URL, gateway.__version__)
    capabilities = await mcp_items.capabilities(context, vendor, tells_changes=True, is_compact=is_compact)
    return results.discovered(
        server, initialize.instructions(*vendor_names(context, vendor), how_to_find), capabilities
    )


async def _list_items(context: RequestContext, vendor: Vendor | None, asked: ModernRequest) -> HttpResponse:
    if asked.params.get("cursor") is not None:
        return responses.json_response(jsonrpc.error(asked.id, jsonrpc.INVALID_PARAMS, mcp_items.ONE_PAGE))
    found = await mcp_items.listed(context, vendor, asked.method)
    if not found.is_offered:
        return refused(errors.method_not_found(asked.id))
    before = jsonrpc.result_head(asked.id) + results.before_list(_server(), mcp_items.meta_of(found.unavailable))
    return responses.json_parts((before, *mcp_items.members(asked.method, found), b"}}"))


async def _list(context: RequestContext, route: Route, vendor: Vendor | None, asked: ModernRequest) -> HttpResponse:
    if asked.params.get("cursor") is not None:
        return responses.json_response(jsonrpc.error(asked.id, jsonrpc.INVALID_PARAMS, mcp_items.ONE_PAGE))
    if compact_calls.applies(context, route):
        before, after = results.around_list(_server(), {})
        return responses.json_parts((jsonrpc.result_head(asked.id) + before, compact_tools.LIST, after + b"}"))
    listed = await list_tools(context, [vendor] if vendor else None)
    before, after = results.around_list(_server(), mcp_items.meta_of(listed.unavailable))
    return responses.json_parts((jsonrpc.result_head(asked.id) + before, listed.body, after + b"}"))


async def _listen(
    context: RequestContext, route: Route, vendor: Vendor | None, asked: ModernRequest, accept: str | None
) -> HttpResponseBase:
    if not accepts_events(accept):
        raise responses.HttpError(406, "not_acceptable", "Accept text/event-stream: a subscription is an event stream.")
    wanted = subscriptions.wanted(asked.params.get("notifications"))
    if wanted is None:
        text = "params.notifications must say which notifications to send"
        return responses.json_response(jsonrpc.error(asked.id, jsonrpc.INVALID_PARAMS, text))
    lists, addresses = wanted
    is_compact = compact_calls.applies(context, route)
    declared = await mcp_items.capabilities(context, vendor, tells_changes=True, is_compact=is_compact)
    kinds = [kind for kind in Listed if kind.value in lists and declared.get(kind.value, {}).get("listChanged")]
    confirmed = await _confirmed(context, vendor, addresses)
    if kinds or confirmed:
        messages = change_streams.Messages(
            changed=lambda kind: subscriptions.notification(asked.id, kind.notification),
            updated=lambda address: subscriptions.notification(asked.id, item_kinds.UPDATED, uri=address),
            first=lambda kept: subscriptions.begun(asked.id, [kind.value for kind in kinds], kept),
            last=subscriptions.ended(asked.id, _server()),
        )
        stream = await change_streams.stream_of(context, vendor, kinds, messages, [each.found for each in confirmed])
        if stream is not None:
            return stream
    return responses.events((subscriptions.begun(asked.id, ()), subscriptions.ended(asked.id, _server())))


async def _confirmed(context: RequestContext, vendor: Vendor | None, addresses: Sequence[str]) -> list[Confirmed]:
    """Those that the caller may hear of, and that their vendors announce."""
    # A body has room for a million of them.
    some = list(dict.fromkeys(addresses[:MAX_ADDRESSES_READ]))[: settings.SUBSCRIPTIONS_OF_SESSION]
    calls = [item_call(context, vendor, item_kinds.SUBSCRIBE, {"uri": address}) for address in some]
    found = await asyncio.gather(*(confirm(context, call) for call in calls))
    return [each for each in found if isinstance(each, Confirmed)]


def _read_call(asked: ModernRequest, call: ToolCall, said: McpHeaders, accept: str | None) -> ToolCall:
    contradiction = partial(param_headers.contradiction, arguments=call.arguments, headers=said)
    return replace(_with_answers(asked, _heard(asked, call, accept)), contradiction=contradiction)


def _read_item(asked: ModernRequest, call: ItemCall, accept: str | None) -> ItemCall:
    call = _heard(asked, call, accept)
    return _with_answers(asked, call) if asked.method in input_required.MAY_ASK else call


def _with_answers(asked: ModernRequest, call: CallT) -> CallT:
    """With what the caller can be asked, and the answers of a retry."""
    answers = input_required.read_answers(asked.params)
    if isinstance(answers, jsonrpc.Invalid):
        return replace(call, fault=call.fault or answers.message)
    return replace(call, capabilities=questions.declared(asked.capabilities), answers=answers)


def _heard(asked: ModernRequest, call: CallT, accept: str | None) -> CallT:
    """With a relay for the notifications that the caller wants."""
    token, _ = progress.split_meta(asked.params["_meta"])
    wanted = progress.Wanted(token, asked.log_level)
    return replace(call, relay=ProgressRelay(wanted) if wanted != _NOTHING and accepts_events(accept) else None)


async def _answer(
    asked: ModernRequest, relay: ProgressRelay | None, running: Coroutine[Any, Any, tuple[int, bytes]]
) -> HttpResponseBase:
    """`running` returns the HTTP status of an answer without a stream, and the message."""
    status = 200

    async def run() -> bytes:
        nonlocal status
        status, body = await running
        return body

    def respond(body: bytes) -> HttpResponse:
        return responses.json_response(body, status)

    if relay is None:
        return respond(await run())
    return await respond_with_progress(asked.id, relay, run(), respond)


async def _run_tool(context: RequestContext, route: Route, asked: ModernRequest, call: ToolCall) -> tuple[int, bytes]:
    return await _rendered(context, route, asked, await call_tool(context, call))


async def _run_item(context: RequestContext, route: Route, asked: ModernRequest, call: ItemCall) -> tuple[int, bytes]:
    outcome = await ask_item(context, call)
    if isinstance(outcome, Delivered):
        work = partial(results.of_item, outcome.raw_result, _server(), may_be_kept=call.method == item_kinds.READ)
        return await _spliced(context, asked, work, len(outcome.raw_result))
    if isinstance(outcome, Asked):
        return 200, jsonrpc.result(asked.id, results.input_required(outcome.result, _server()))
    if isinstance(outcome, VendorError):
        return errors.of_vendor(asked.id, outcome.raw_error, asked.capabilities)
    if isinstance(outcome, UnknownItem) and not outcome.is_offered:
        refusal = errors.method_not_found(asked.id)
        return refusal.status, refusal.body
    return 200, mcp_outcomes.render_item(route, asked.id, outcome, unknown_address=jsonrpc.INVALID_PARAMS)


async def _spliced(
    context: RequestContext,
    asked: ModernRequest,
    work: Callable[[], tuple[bytes, bytes | memoryview]],
    size_bytes: int,
) -> tuple[int, bytes]:
    parts = await fair_scheduler.run_small_inline(context.caller.principal.org_id, work, size_bytes)
    return 200, b"".join((jsonrpc.result_head(asked.id), *parts, b"}"))


async def _rendered(context: RequestContext, route: Route, asked: ModernRequest, outcome: Outcome) -> tuple[int, bytes]:
    """The HTTP status of an answer without a stream, and the message. Raises: HttpError with 403 or 429."""
    if isinstance(outcome, Delivered):
        raw = outcome.raw_result
        return await _spliced(context, asked, partial(results.of_tool, raw, _server()), len(raw))
    if isinstance(outcome, Asked):
        return 200, jsonrpc.result(asked.id, results.input_required(outcome.result, _server()))
    if isinstance(outcome, Denied):
        if (
            outcome.is_theirs
            and elicitation.can_open_pages(asked.capabilities)
            and not elicitation.was_asked(asked.params)
        ):
            members = elicitation.page_to_open(outcome.text, f"{settings.BASE_URL}{outcome.page}")
            return 200, jsonrpc.result(asked.id, results.input_required(members, _server()))
        return 200, jsonrpc.result(asked.id, results.complete(mcp_outcomes.denied_result(route, outcome), _server()))
    if isinstance(outcome, VendorError):
        return errors.of_vendor(asked.id, outcome.raw_error, asked.capabilities)
    if isinstance(outcome, BadArguments) and outcome.is_header_mismatch:
        refusal = errors.header_mismatch(asked.id, outcome.text)
        return refusal.status, refusal.body
    return 200, mcp_outcomes.render(route, asked.id, outcome)


def _server() -> dict[str, object]:
    """The gateway's name, for the `_meta` of results."""
    return initialize.server_name(gateway.__version__)
