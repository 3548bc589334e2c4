"""Answers of the OAuth endpoints: JSON for success and error alike, open to pages of every origin, never stored."""

from __future__ import annotations

from typing import Any, TypeVar

from django.http import HttpResponse, JsonResponse
from django.http.response import HttpResponseBase

# Browser clients send the protocol version with every request, so a preflight has to allow it.
_ALLOWED_HEADERS = "Authorization, Content-Type, MCP-Protocol-Version"
_EXPOSED_HEADERS = "WWW-Authenticate, Retry-After, RateLimit, RateLimit-Policy, X-Request-Id"
_PREFLIGHT_MAX_AGE_S = 86_400

Response = TypeVar("Response", bound=HttpResponseBase)


def open_to_all(response: Response) -> Response:
    """Let pages of every origin read this; without credentials, so no session is ever involved. Spec: D28"""
    response["Access-Control-Allow-Origin"] = "*"
    response["Access-Control-Expose-Headers"] = (
        "WWW-Authenticate, Retry-After, RateLimit, RateLimit-Policy, X-Request-Id"
    )
    return response


def preflight(methods: str) -> HttpResponse:
    """The answer to a browser's OPTIONS."""
    response = open_to_all(HttpResponse(status=204))
    response["Access-Control-Allow-Methods"] = methods
    response["Access-Control-Allow-Headers"] = _ALLOWED_HEADERS
    response["Access-Control-Max-Age"] = str(_PREFLIGHT_MAX_AGE_S)
    return response


def oauth_json(body: dict[str, Any], status: int = 200) -> JsonResponse:
    """An answer that no cache keeps. Spec: RFC 6749 5.1 · D27"""
    response = open_to_all(JsonResponse(body, status=status))
    response["Cache-Control"] = "no-store"
    response["Pragma"] = "no-cache"
    return response


def oauth_error(error: str, description: str, status: int = 400) -> JsonResponse:
    """An error as RFC 6749 5.2 spells it; `description` is printable ASCII without quotes."""
    return oauth_json({"error": error, "error_description": description}, status)
