"""Reading the requests of the OAuth endpoints: bounded bodies, one reading, and refusals that are JSON."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

import structlog
from django.conf import settings
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.http.request import UnreadablePostError

from gateway.coordination import registry
from gateway.coordination.rules import Rule
from gateway.coordination.store import Admission, CoordinationUnavailable
from gateway.lib.client_address import address_key
from gateway.web import rate
from oauth_ext import token_form
from oauth_ext.jwt.keys import SigningKeysUnavailable
from oauth_ext.token_form import Fields
from oauth_ext.views.answers import oauth_error, preflight

log = structlog.get_logger(__name__)
METHODS = "POST, OPTIONS"
_RETRY_AFTER_S = 5

View = Callable[[HttpRequest], HttpResponse]


class Refused(Exception):
    """The request ends here, with this answer."""

    def __init__(self, error: str, description: str, status: int = 400) -> None:
        super().__init__(error)
        self.response = oauth_error(error, description, status)


def posted(view: View) -> View:
    """A view for POST alone, open to pages of every origin; it reads no session, so it needs no CSRF token.

    What it refuses is JSON, and so is what keeps it from answering: a database that is away is a 503, never a page.
    """

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
        except Refused as refusal:
            return refusal.response
        except (OperationalError, InterfaceError, CoordinationUnavailable, SigningKeysUnavailable) as fault:
            log.error("an OAuth request could not be served", path=request.path, fault=type(fault).__name__)
            return _unavailable()

    guarded.csrf_exempt = True  # type: ignore[attr-defined]
    return guarded


def read_form(request: HttpRequest, known: frozenset[str]) -> Fields:
    """The `known` fields of a form body; parameters in the address are refused.

    Raises: Refused.
    """
    if request.META.get("QUERY_STRING"):
        raise Refused("invalid_request", "Parameters belong in the body, not in the address.")
    try:
        return token_form.parse(request.headers.get("Content-Type", ""), read_body(request), known)
    except token_form.FormError as fault:
        raise Refused("invalid_request", fault.reason) from None


def read_body(request: HttpRequest) -> bytes:
    """At most OAUTH_BODY_BYTES, whatever Content-Length says.

    Raises: Refused.   Spec: D18
    """
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise Refused("invalid_request", "Content-Encoding is not accepted.", 415)
    announced = request.headers.get("Content-Length", "")
    try:
        if announced.isdigit() and int(announced) > settings.OAUTH_BODY_BYTES:
            raise Refused("invalid_request", "The body is too large.", 413)
        body = request.read(settings.OAUTH_BODY_BYTES + 1)
    except UnreadablePostError:
        raise Refused("invalid_request", "The body ended early.") from None
    if len(body) > settings.OAUTH_BODY_BYTES:
        raise Refused("invalid_request", "The body is too large.", 413)
    return body


def limited(rule: str) -> Callable[[View], View]:
    """Count every request for its address under the setting `rule`, before anything of it is read.

    Whoever comes to these endpoints has not said yet who they are, and each answer costs the database something.
    Every answer says what is left.   Spec: §8 · D19-D22
    """

    def decorate(view: View) -> View:
        @wraps(view)
        def counted(request: HttpRequest) -> HttpResponse:
            admission = count(getattr(settings, rule), address_key(rate.address_of(request)))
            try:
                response = view(request)
            except Refused as refusal:
                response = refusal.response
            for name, value in rate.headers(admission).items():
                response.headers.setdefault(name, value)
            return response

        return counted

    return decorate


def count(rule: Rule, key: str = "") -> Admission:
    """Count one request under the rule.

    Raises: Refused with 429 and when to come again.   Spec: D19, D20
    """
    return admitted(registry.current().hit(rule, key))


def require_room(rule: Rule, key: str) -> Admission:
    """What the window still admits; nothing is counted.

    Raises: Refused as `count`.
    """
    return admitted(registry.current().peek(rule, key))


def admitted(admission: Admission) -> Admission:
    """The admission, if it is one.

    Raises: Refused as `count`.
    """
    if not admission.allowed:
        refusal = Refused("rate_limited", f"Too many requests. Try again in {admission.retry_after_s} s.", 429)
        for name, value in rate.headers(admission).items():
            refusal.response[name] = value
        raise refusal
    return admission


def _unavailable() -> HttpResponse:
    response = oauth_error("temporarily_unavailable", "The service cannot answer right now. Try again.", 503)
    response["Retry-After"] = str(_RETRY_AFTER_S)
    return response
