"""Answers of the hot path: JSON, JSON-RPC, and refusals in OAuth's form with their challenges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from django.conf import settings
from django.http import HttpResponse

from gateway.coordination import limit_headers
from gateway.coordination.store import Admission
from gateway.lib import error_help
from gateway.lib.byte_budget import FREE_BYTES
from gateway.lib.hot_path_response import HotPathResponse, SharedBodyResponse
from gateway.lib.sentences import plain
from gateway.lib.shared_body import SharedBody
from gateway.middleware.refusal import Refusal
from oauth_ext import challenges
from proxy.outcomes import Denied
from proxy.protocol import sse

EXPOSED_HEADERS = (
    "WWW-Authenticate, Mcp-Session-Id, MCP-Protocol-Version, X-Auth-Ms, X-Session-Ms, X-Vendor-Ms, X-Total-Ms,"
    " X-Cache, X-Request-Id, Retry-After, RateLimit, RateLimit-Policy, X-RateLimit-Limit, X-RateLimit-Remaining,"
    " X-RateLimit-Reset, Deprecation, Link, Sunset"
)
ALLOWED_HEADERS = (
    "Authorization, Content-Type, Accept, Mcp-Session-Id, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Last-Event-ID"
)

INTERNAL_ERROR = "Something went wrong on our side. The request's id leads to it in the log."


class HttpError(Exception):
    """Ends a request before the pipeline, in OAuth's form and never as JSON-RPC. Spec: D106"""

    def __init__(self, status: int, error: str, description: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(error)
        self.status, self.error, self.description = status, error, description
        self.headers = dict(headers or {})


def json_response(body: bytes, status: int = 200) -> HttpResponse:
    # Answers are for one caller: no cache may keep them.
    headers = {"Content-Type": "application/json", "Cache-Control": "no-store"}
    # Django encodes the headers of refusals, which may contain text.
    return (
        HotPathResponse(body, headers=headers) if status == 200 else HttpResponse(body, status=status, headers=headers)
    )


def json_parts(parts: Sequence[bytes | SharedBody]) -> HttpResponse:
    """200 with a body in parts, which are not joined if they are large."""
    if sum(map(len, parts)) <= FREE_BYTES:
        return json_response(b"".join(map(bytes, parts)))
    return SharedBodyResponse(parts, headers={"Content-Type": "application/json", "Cache-Control": "no-store"})


def events(messages: Sequence[bytes]) -> HttpResponse:
    """200 with an event stream that has these messages and ends."""
    headers = {
        "Content-Type": "text/event-stream",
        "Cache-Control": "no-cache, no-transform",
        "X-Accel-Buffering": "no",
    }
    return HotPathResponse(b"".join(map(sse.encode_event, messages)), headers=headers)


def accepted() -> HttpResponse:
    """202, to messages without an answer."""
    return _without_body(202)


def preflight() -> HttpResponse:
    """204; the caller adds the CORS headers."""
    return _without_body(204)


def ended() -> HttpResponse:
    """204, to the end of a session."""
    return _without_body(204)


def _without_body(status: int) -> HttpResponse:
    response = HttpResponse(status=status)
    del response.headers["Content-Type"]
    response.headers["Cache-Control"] = "no-store"
    return response


def http_error_response(refusal: HttpError, *, cli: bool) -> HttpResponse:
    """`{error, error_description}`, or `{error}` with the description on CLI routes. Spec: D99"""
    if cli:
        body: dict[str, str] = {"error": refusal.description}
    else:
        body = {"error": refusal.error, "error_description": refusal.description}
    response = json_response(msgspec.json.encode(body, enc_hook=plain), refusal.status)
    response.headers["Link"] = error_help.link(refusal.error)
    for name, value in refusal.headers.items():
        response.headers[name] = value
    return response


def denial_text(denied: Denied) -> str:
    """The rule, with the address of the page where a person can ask for access."""
    return f"{denied.text} {denied.action} at {settings.BASE_URL}{denied.page}" if denied.page else denied.text


def unauthorized(resource_path: str, scope: str, description: str | None) -> HttpError:
    """401 with the challenge that starts a client's login."""
    error = "invalid_token" if description else None  # RFC 6750 3.1: no error code without credentials
    value = challenges.challenge(settings.BASE_URL, resource_path, scope, error, description)
    return HttpError(
        401, error or "unauthorized", description or "A bearer token is needed.", {"WWW-Authenticate": value}
    )


def insufficient_scope(resource_path: str, scope_needed: str, description: str) -> HttpError:
    """403 with the scopes to ask for."""
    value = challenges.challenge(settings.BASE_URL, resource_path, scope_needed, "insufficient_scope", description)
    return HttpError(403, "insufficient_scope", description, {"WWW-Authenticate": value})


def rate_limited(retry_after_s: int) -> HttpError:
    """429. Spec: D19"""
    return HttpError(
        429, "rate_limited", limit_headers.refusal_text(retry_after_s), {"Retry-After": str(retry_after_s)}
    )


def too_many_large_bodies(admission: Admission) -> HttpError:
    """429 for a body past the organization's window, which is given in bytes. Spec: D19"""
    text = f"Your organization has sent too much data in large requests. Try again in {admission.retry_after_s} s."
    headers = limit_headers.refusal_in_bytes(admission, settings.BODY_UNIT_BYTES)
    return HttpError(429, "rate_limited", text, headers)


def auth_throttled(admission: Admission) -> HttpError:
    """429 for an address with too many refused bearers. Spec: D19, D22"""
    refusal = rate_limited(admission.retry_after_s)
    refusal.headers |= limit_headers.headers(admission)
    return refusal


def unknown_session() -> HttpError:
    """404, to which a client begins a new session. Spec: MCP 2025-11-25, basic/transports, Session Management"""
    return HttpError(404, "unknown_session", "This session has ended. Send initialize, without Mcp-Session-Id.")


def no_more_streams() -> HttpError:
    """405, which clients take for an endpoint without streams of its own."""
    return HttpError(405, "method_not_allowed", "Too many streams are open. Use POST.", {"Allow": "POST, DELETE"})


def unavailable() -> HttpError:
    """503: a store cannot be read or written."""
    return HttpError(503, "unavailable", "The gateway cannot serve this right now. Try again.", {"Retry-After": "5"})


def overloaded() -> HttpError:
    """503: no memory for another large body at the moment."""
    return HttpError(503, "overloaded", "Too many large requests are in progress. Try again.", {"Retry-After": "2"})


def batch_full() -> HttpError:
    return HttpError(503, "overloaded", "The response to this batch is already full. Send this request by itself.")


def body_refused(refused: Refusal) -> HttpError:
    """Closes the connection: the unread rest of the body would be taken for the next request."""
    headers = {"Connection": "close"}
    if refused.retry_after_s is not None:
        headers["Retry-After"] = str(refused.retry_after_s)
    return HttpError(refused.status, refused.error, refused.message, headers)


def internal_error() -> HttpError:
    """500 without details of the error. Spec: §7"""
    return HttpError(500, "internal_error", INTERNAL_ERROR)
