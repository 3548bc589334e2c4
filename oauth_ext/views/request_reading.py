"""Request handling of the OAuth endpoints: bounded bodies, form parsing, limits, and refusals as JSON."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

import structlog
from django.conf import settings
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.http.request import UnreadablePostError

from gateway.coordination import backend
from gateway.coordination.limit_headers import refusal_text
from gateway.coordination.rules import Rule
from gateway.coordination.store import Admission, CoordinationUnavailable
from gateway.lib.client_address import address_key
from gateway.lib.declared_length import declared_length
from gateway.web import rate
from oauth_ext import token_form
from oauth_ext.jwt.keys import SigningKeysUnavailable
from oauth_ext.token_form import Fields
from oauth_ext.views.responses import oauth_error, preflight

log = structlog.get_logger(__name__)
METHODS = "POST, OPTIONS"
_RETRY_AFTER_S = 5  # of a 503

View = Callable[[HttpRequest], HttpResponse]


class OAuthErrorResponse(Exception):
    """Ends the request with `response`."""

    def __init__(self, error: str, description: str, status: int = 400) -> None:
        super().__init__(error)
        self.response = oauth_error(error, description, status)


def post_endpoint(view: View) -> View:
    """A view for POST and OPTIONS, open to every origin."""

    @wraps(view)
    def guarded(request: HttpRequest) -> HttpResponse:
        if request.method == "OPTIONS":
            return preflight(METHODS)
        if request.method != "POST":
            response = oauth_error("invalid_request", "Use POST.", 405)
            response["Allow"] = METHODS
            return response
        try:
            return view(request)
        except OAuthErrorResponse as refusal:
            return refusal.response
        # A database or store that is away gives a 503 as JSON, never a page.
        except (OperationalError, InterfaceError, CoordinationUnavailable, SigningKeysUnavailable) as fault:
            log.error("an OAuth request could not be served", path=request.path, fault=type(fault).__name__)
            return _unavailable()

    # The endpoint reads no session.
    guarded.csrf_exempt = True  # type: ignore[attr-defined]
    return guarded


def read_form(request: HttpRequest, known: frozenset[str]) -> Fields:
    """Returns the `known` fields of the body. Raises: OAuthErrorResponse, also for parameters in the address."""
    if request.META.get("QUERY_STRING"):
        raise OAuthErrorResponse("invalid_request", "Send parameters in the body, not in the URL.")
    try:
        return token_form.parse(request.headers.get("Content-Type", ""), read_body(request), known)
    except token_form.FormError as fault:
        raise OAuthErrorResponse("invalid_request", fault.reason) from None


def read_body(request: HttpRequest) -> bytes:
    """Reads at most OAUTH_BODY_BYTES. Raises: OAuthErrorResponse. Spec: D18"""
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise OAuthErrorResponse("invalid_request", "Content-Encoding is not accepted.", 415)
    announced = declared_length(request.headers.get("Content-Length", ""))
    try:
        if announced is not None and announced > settings.OAUTH_BODY_BYTES:
            raise OAuthErrorResponse("invalid_request", "The body is too large.", 413)
        # One byte more than allowed, because Content-Length may be absent or wrong.
        body = request.read(settings.OAUTH_BODY_BYTES + 1)
    except UnreadablePostError:
        raise OAuthErrorResponse("invalid_request", "The body ended early.") from None
    if len(body) > settings.OAUTH_BODY_BYTES:
        raise OAuthErrorResponse("invalid_request", "The body is too large.", 413)
    return body


def rate_limited(rule: str) -> Callable[[View], View]:
    """Counts each request for its address under the setting `rule`. Spec: §8 · D19-D22"""

    def decorate(view: View) -> View:
        @wraps(view)
        def counted(request: HttpRequest) -> HttpResponse:
            # Before the body is read: the caller is unknown, and each response costs the database something.
            admission = count(getattr(settings, rule), address_key(rate.address_of(request)))
            try:
                response = view(request)
            except OAuthErrorResponse as refusal:
                response = refusal.response
            rate.add_headers(response, admission)
            return response

        return counted

    return decorate


def count(rule: Rule, key: str = "") -> Admission:
    """Raises: OAuthErrorResponse with 429 and Retry-After. Spec: D19, D20"""
    return require_admitted(backend.current().hit(rule, key))


def require_capacity(rule: Rule, key: str) -> Admission:
    """Counts nothing. Raises: OAuthErrorResponse like `count`."""
    return require_admitted(backend.current().peek(rule, key))


def require_admitted(admission: Admission) -> Admission:
    """Raises: OAuthErrorResponse like `count`."""
    if not admission.allowed:
        refusal = OAuthErrorResponse("rate_limited", refusal_text(admission.retry_after_s), 429)
        rate.add_headers(refusal.response, admission)
        raise refusal
    return admission


def _unavailable() -> HttpResponse:
    response = oauth_error("temporarily_unavailable", "The service is not available right now. Try again.", 503)
    response["Retry-After"] = str(_RETRY_AFTER_S)
    return response
