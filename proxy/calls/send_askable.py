"""Sends a request to its vendor, and passes on what the vendor asks in the middle of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from proxy.calls import caching, vendor_request
from proxy.calls.ask_caller import asking, send_in_rounds
from proxy.calls.ask_modern_caller import ResultQuestions
from proxy.calls.asking_request import AskingRequest
from proxy.calls.call_audit import OpenCall
from proxy.calls.decide import allowed_questions
from proxy.progress_relay import ProgressRelay
from proxy.protocol import questions
from proxy.protocol.modern.input_required import Answers
from proxy.request_context import RequestContext
from proxy.vendors.destination import Destination
from proxy.vendors.tool_request import ToolRequest


def sender(
    context: RequestContext,
    request: AskingRequest,
    row: OpenCall,
    *,
    destination: Destination,
    params: dict[str, Any],
    relay: ProgressRelay | None,
    capabilities: Mapping[str, Any] | None,
    answers: Answers | None,
    is_repeatable: bool,
    definition: bytes = b"",
) -> caching.SendToVendor:
    """`capabilities`: of a caller that can be asked. `answers`: with the vendor's state. `definition`: a tool's."""
    if relay is not None and context.session_state.log_level is not None:
        relay.want_logs(context.session_state.log_level)
    if answers is not None:
        params |= answers.as_params()
    if capabilities is not None:
        capabilities = questions.allowed(capabilities, allowed_questions(context.caller.organization, request.vendor))
    own = asking(context, relay, request, row, capabilities)
    if own is None and context.session is not None:
        capabilities = None  # such a caller is asked on a stream or not at all
    place = destination if own is None else destination.for_caller(own.mark, own.capabilities)
    tool = ToolRequest(definition, capabilities, answers is not None, None if own is None else own.ask)
    send: Callable[..., Any] = partial(
        vendor_request.send,
        *(context, request.vendor, request.credential, place, request.method, params),
        relay=relay,
        is_repeatable=is_repeatable,
        tool=tool,
        on_asked=ResultQuestions(context, request, capabilities, row).pass_on,
    )
    return send if own is None else partial(send_in_rounds, send, tool, params, own)
