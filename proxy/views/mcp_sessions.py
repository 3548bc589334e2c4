"""Sessions of callers of the earlier revisions: begin, answers to questions, end. docs/decisions/0110"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import msgspec
import structlog
from django.conf import settings
from django.http import HttpResponse

from gateway.coordination.store import CoordinationUnavailable
from gateway.hot_path_request import HotPathRequest
from proxy.outcomes import Denied, ItemOutcome
from proxy.protocol import jsonrpc, log_levels, questions, url_elicitation
from proxy.protocol.modern import elicitation
from proxy.request_context import NEW, RequestContext
from proxy.sessions import client_session
from proxy.sessions.client_session import ClientSession, ClientSessionState
from proxy.sessions.question_desk import NoSuchQuestion
from proxy.sessions.session_states import TooManyChanges
from proxy.views import responses
from proxy.views.route import Route, ServedRequest, count

log = structlog.get_logger(__name__)
HEADER = "Mcp-Session-Id"
_META = "HTTP_MCP_SESSION_ID"
_LEVELS = ", ".join(log_levels.RANKS)
NO_QUESTION = "No question with this id waits for an answer"


def has_id(request: HotPathRequest) -> bool:
    return _META in request.META


def open_session(context: RequestContext, request: HotPathRequest, route: Route) -> None:
    """Writes `context.session`, if the request names one. Raises: SessionEnded."""
    session_id = request.META.get(_META)
    if session_id is not None:
        context.session = client_session.opened(context.caller.principal, route.resource_path, session_id)


def begin(context: RequestContext, route: Route, params: dict[str, Any], response: HttpResponse) -> HttpResponse:
    """Name a session in the answer to `initialize`, for a client that can answer a vendor's questions."""
    capabilities = questions.declared(params.get("capabilities"))
    if capabilities:
        response.headers[HEADER] = client_session.issued(context.caller.principal, route.resource_path, capabilities)
    return response


def begins(params: dict[str, Any]) -> bool:
    """Whether `initialize` with these params begins a session."""
    return bool(questions.declared(params.get("capabilities")))


async def set_log_level(context: RequestContext, message: jsonrpc.Request) -> bytes:
    """The answer to `logging/setLevel`, for a caller with a session. Raises: as `_change`."""
    level = message.params.get("level")
    if context.session is None:
        return jsonrpc.error(message.id, jsonrpc.METHOD_NOT_FOUND, "Method not found")
    if not isinstance(level, str) or level not in log_levels.RANKS:
        return jsonrpc.error(message.id, jsonrpc.INVALID_PARAMS, f"params.level must be one of {_LEVELS}")
    state = msgspec.structs.replace(context.session_state, log_level=level)
    if state != context.session_state:
        await _change(context, context.session, state)
    return jsonrpc.result_bytes(message.id, b"{}")


def page_to_open(context: RequestContext, message_id: jsonrpc.MessageId, outcome: ItemOutcome) -> bytes | None:
    """The error that sends the caller's person to a page that mends a refusal; None for other outcomes, and for clients
    that cannot open pages."""
    session = context.session
    if session is None or not isinstance(outcome, Denied) or not outcome.is_theirs:
        return None
    if not elicitation.can_open_pages(session.capabilities):
        return None
    elicitation_id = client_session.elicitation_id(session, outcome.vendor)
    data = url_elicitation.pages_to_open(elicitation_id, outcome.text, f"{settings.BASE_URL}{outcome.page}")
    return jsonrpc.error(message_id, url_elicitation.REQUIRED, outcome.text, data)


async def _change(context: RequestContext, session: ClientSession, state: ClientSessionState) -> None:
    """Raises: HttpError with 429; CoordinationUnavailable."""
    is_first = context.session_state == NEW
    try:
        await context.runtime.session_states.change(context.caller.principal, session, state, is_first=is_first)
    except TooManyChanges as fault:
        raise responses.rate_limited(fault.retry_after_s) from fault


async def take_answers(context: RequestContext, messages: Iterable[object]) -> HttpResponse:
    """202 once the calls that wait have their answers; 400 if none waits for one of them. Raises: as `count`."""
    await count(context)
    session = context.session
    for message in messages:
        if session is None or not isinstance(message, jsonrpc.Response):
            continue
        try:
            await context.runtime.questions.answer(context.caller.principal, session, message)
        except NoSuchQuestion:
            return responses.json_response(jsonrpc.error(None, jsonrpc.INVALID_REQUEST, NO_QUESTION), 400)
    return responses.accepted()


async def _forget_subscriptions(context: RequestContext, session: ClientSession) -> None:
    try:
        await context.runtime.subscriptions.end(context.caller.principal, session)
    except CoordinationUnavailable as fault:  # they end by themselves in a while, and nothing is told of them
        log.info("subscriptions of an ended session not removed", fault=str(fault))


async def end(request: HotPathRequest, route: Route) -> HttpResponse:
    """DELETE: processes know the session no more from their next request on."""
    served = ServedRequest(request, replace(route, method="DELETE"))
    try:
        context = await served.open()
        if context is None:
            return served.preflight()
        open_session(context, request, route)
        await count(context)
        if context.session is not None:
            await _change(context, context.session, ClientSessionState(is_ended=True))
            await _forget_subscriptions(context, context.session)
            context.runtime.shared_changes.session_changed(context.session)
        response = responses.ended()
    except Exception as fault:
        response = await served.refusal(fault)
    served.finish(response)
    return response
