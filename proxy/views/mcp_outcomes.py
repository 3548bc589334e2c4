"""The JSON-RPC answer to each outcome of a call. Spec: D105"""

from __future__ import annotations

from typing import Any

from gateway.lib import error_help
from proxy.outcomes import (
    Asked,
    BadArguments,
    Delivered,
    Denial,
    Denied,
    Failed,
    InternalError,
    ItemOutcome,
    Outcome,
    RateLimited,
    UnknownItem,
    UnknownTool,
    VendorError,
)
from proxy.protocol import jsonrpc
from proxy.views import responses
from proxy.views.route import Route


def render(route: Route, message_id: jsonrpc.MessageId, outcome: Outcome) -> bytes:
    """Raises: HttpError with 403 or 429."""
    if isinstance(outcome, Delivered):
        return jsonrpc.result_bytes(message_id, outcome.raw_result)
    if isinstance(outcome, Asked):  # only a caller of the modern revision is asked
        return jsonrpc.result(message_id, outcome.result)
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
    return jsonrpc.result(message_id, denied_result(route, outcome))


def render_item(route: Route, message_id: jsonrpc.MessageId, outcome: ItemOutcome, *, unknown_address: int) -> bytes:
    """The answer to a request for a resource or a prompt, whose results cannot say that they failed.

    `unknown_address`: the code for a resource that is not there. Raises: as `render`.
    """
    if isinstance(outcome, UnknownItem):
        return _unknown_item(message_id, outcome, unknown_address)
    if not isinstance(outcome, Denied):
        return render(route, message_id, outcome)
    check_denied_scope(route, outcome)
    code = outcome.denial.value
    data = {"reason": code, "vendor": outcome.vendor, "help": error_help.address(code)}
    return jsonrpc.error(message_id, jsonrpc.INVALID_PARAMS, responses.denial_text(outcome), data)


def _unknown_item(message_id: jsonrpc.MessageId, outcome: UnknownItem, unknown_address: int) -> bytes:
    if not outcome.is_offered:
        return jsonrpc.error(message_id, jsonrpc.METHOD_NOT_FOUND, "Method not found")
    if outcome.is_address:
        return jsonrpc.error(message_id, unknown_address, "Resource not found", {"uri": outcome.name})
    return jsonrpc.error(message_id, jsonrpc.INVALID_PARAMS, f"Unknown prompt: {outcome.name}")


def denied_result(route: Route, denied: Denied) -> dict[str, Any]:
    """Raises: HttpError with 403 for a scope."""
    check_denied_scope(route, denied)
    # A model can explain other rules to its user.
    return {
        "content": [{"type": "text", "text": responses.denial_text(denied)}],
        "isError": True,
        "_meta": {"gateway/help": error_help.address(denied.denial.value)},
    }


def check_denied_scope(route: Route, denied: Denied) -> None:
    """Raises: HttpError with 403 for a scope."""
    if denied.denial is Denial.SCOPE:
        raise responses.insufficient_scope(route.resource_path, denied.scope_needed, denied.text)
