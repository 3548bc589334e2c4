"""Exceptions of the API mapped to the documented error body. Spec: D1, D2, D8"""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import structlog
from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest
from rest_framework import exceptions
from rest_framework.response import Response

from billing.errors import SubscriptionRequired
from gateway.coordination.store import CoordinationUnavailable
from gateway.lib import error_help, error_responses
from gateway.lib.errors import DomainError, Forbidden, Invalid, NotFound
from gateway.lib.sentences import sentence
from gateway.web.api_json import BodyTooLarge
from gateway.web.session_authentication import Unauthenticated

log = structlog.get_logger(__name__)
PROBLEM_JSON = "application/problem+json"
# Seconds in `Retry-After` of a 503.
RETRY_AFTER_S = 5


class Unavailable(DomainError):
    """The database or the coordination store cannot be reached. Spec: D8"""

    code, message, status = "unavailable", sentence("We can’t do this right now. Try again in a moment."), 503


def exception_handler(exception: Exception, context: dict[str, Any]) -> Response | None:
    """DRF's exception handler. None for an unforeseen exception: it is logged with its traceback and becomes a 500."""
    refusal = refusal_of(exception)
    if refusal is None:
        return None
    request: HttpRequest = context["request"]._request
    body, headers = render_error(request, refusal)
    if PROBLEM_JSON in request.headers.get("Accept", ""):
        body = _as_problem(request, refusal, body)
        return Response(body, status=refusal.status, headers=headers, content_type=PROBLEM_JSON)
    return Response(body, status=refusal.status, headers=headers)


def render_error(request: HttpRequest, refusal: DomainError) -> tuple[dict[str, Any], dict[str, str]]:
    """The error body and its headers. Spec: D1, D6, D19"""
    body = error_responses.body(refusal.code, refusal.message, getattr(request, "request_id", ""))
    if refusal.fields:
        body["fields"] = refusal.fields
    headers = {**refusal.headers, "Link": error_help.link(refusal.code)}
    if refusal.status == HTTPStatus.TOO_MANY_REQUESTS and "Retry-After" in headers:
        body["retryAfter"] = int(headers["Retry-After"])
    elif isinstance(refusal, SubscriptionRequired) and refusal.portal_url:
        body["portalUrl"] = refusal.portal_url
    elif isinstance(refusal, Unavailable):
        headers["Retry-After"] = str(RETRY_AFTER_S)
    elif isinstance(refusal, Unauthenticated):
        headers["WWW-Authenticate"] = refusal.challenge
    return body, headers


def refusal_of(exception: Exception) -> DomainError | None:
    if isinstance(exception, CoordinationUnavailable | OperationalError | InterfaceError):
        log.warning("api dependency unavailable", fault=type(exception).__name__)
        return Unavailable()
    if isinstance(exception, DomainError):
        return exception
    if isinstance(exception, exceptions.ValidationError):
        return Invalid(fields=dict(_field_errors(exception.detail)))
    if isinstance(exception, Http404):
        return NotFound()
    if isinstance(exception, PermissionDenied):
        return Forbidden()
    if isinstance(exception, RequestDataTooBig):
        return BodyTooLarge()
    return None


def _field_errors(detail: Any, prefix: str = "") -> Iterator[tuple[str, list[str]]]:
    """Messages by the dotted path of the member, such as `tools.3`."""
    if isinstance(detail, dict):
        for name, inner in detail.items():
            yield from _field_errors(inner, f"{prefix}.{name}" if prefix else str(name))
    elif all(isinstance(each, str) for each in detail):
        yield prefix or "body", [str(each) for each in detail]
    else:
        for index, inner in enumerate(detail):
            if inner:
                yield from _field_errors(inner, f"{prefix}.{index}")


def _as_problem(request: HttpRequest, refusal: DomainError, body: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "about:blank",
        "title": HTTPStatus(refusal.status).phrase,
        "status": refusal.status,
        "detail": refusal.message,
        "instance": request.path,
        **body,
    }
