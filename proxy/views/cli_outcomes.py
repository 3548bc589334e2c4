"""The CLI's status and text for each outcome of a call. Spec: §7 · D99, D100"""

from __future__ import annotations

import msgspec
from django.http import HttpResponse

from gateway.lib.sentences import plain
from proxy.outcomes import (
    Asked,
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
    VendorFault,
)
from proxy.protocol import replies
from proxy.views import responses
from proxy.views.responses import HttpError
from proxy.views.route import Route


def cli_response(route: Route, outcome: Outcome) -> HttpResponse:
    """200 for a result. Raises: HttpError for every other outcome."""
    match outcome:
        case Delivered(is_error=False):
            return _result(outcome.raw_result)
        case Delivered():
            raise HttpError(422, "tool_error", replies.error_text(outcome.raw_result))
        case Asked():  # only a caller of the modern revision is asked
            raise HttpError(422, "tool_error", replies.NO_ERROR_TEXT)
        case BadArguments():
            raise HttpError(400, "invalid_request", outcome.text)
        case UnknownTool():
            raise HttpError(403, "unknown_tool", f"There is no tool {outcome.name} that you may call.")
        case Denied():
            raise forbidden(route, outcome)
        case RateLimited():
            raise responses.rate_limited(outcome.retry_after_s)
        case InternalError():
            raise responses.internal_error()
        case VendorError():
            text = f"The vendor returned an error: {replies.cut_text(outcome.message)}"
            raise HttpError(502, "vendor_error", text)
        case Failed():
            headers = {} if outcome.retry_after_s is None else {"Retry-After": str(outcome.retry_after_s)}
            rejected = outcome.fault is VendorFault.REJECTED_CREDENTIALS
            text = "vendor rejected credentials" if rejected else outcome.detail
            raise HttpError(502, outcome.fault.value, text, headers)


def forbidden(route: Route, denied: Denied) -> HttpError:
    """403; a missing scope is named in the challenge."""
    if denied.denial is Denial.SCOPE:
        return responses.insufficient_scope(route.resource_path, denied.scope_needed, denied.text)
    return HttpError(403, denied.denial.value, responses.denial_text(denied))


def _result(raw_result: bytes) -> HttpResponse:
    try:
        content = replies.cli_content(raw_result)
    except replies.BadVendorReply as fault:
        text = f"The vendor's result is unusable: {fault}."
        raise HttpError(502, VendorFault.BAD_RESPONSE.value, text) from fault
    return responses.json_response(msgspec.json.encode({"result": {"content": content}}, enc_hook=plain))
