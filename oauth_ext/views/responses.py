"""Responses of the OAuth endpoints: JSON for success and error, readable from every origin, never cached."""

from __future__ import annotations

from typing import Any, TypeVar

from django.http import HttpResponse, JsonResponse
from django.http.response import HttpResponseBase

from gateway.lib import error_help

# Browser clients send MCP-Protocol-Version with every request.
_ALLOWED_HEADERS = "Authorization, Content-Type, MCP-Protocol-Version"
_EXPOSED_HEADERS = "WWW-Authenticate, Link, Retry-After, RateLimit, RateLimit-Policy, X-Request-Id"
_PREFLIGHT_MAX_AGE_S = 86_400

Response = TypeVar("Response", bound=HttpResponseBase)


def open_to_all(response: Response) -> Response:
    """Allows every origin, without credentials, so that no session is involved. Spec: D28"""
    response["Access-Control-Allow-Origin"] = "*"
    response["Access-Control-Expose-Headers"] = _EXPOSED_HEADERS
    return response


def preflight(methods: str) -> HttpResponse:
    response = open_to_all(HttpResponse(status=204))
    response["Access-Control-Allow-Methods"] = methods
    response["Access-Control-Allow-Headers"] = _ALLOWED_HEADERS
    response["Access-Control-Max-Age"] = str(_PREFLIGHT_MAX_AGE_S)
    return response


def oauth_json(body: dict[str, Any], status: int = 200) -> JsonResponse:
    """Spec: RFC 6749 5.1 · D27"""
    response = open_to_all(JsonResponse(body, status=status))
    response["Cache-Control"] = "no-store"
    response["Pragma"] = "no-cache"
    return response


def oauth_error(error: str, description: str, status: int = 400) -> JsonResponse:
    """`description` must be printable ASCII without quotes (RFC 6749 5.2)."""
    response = oauth_json({"error": error, "error_description": description}, status)
    response["Link"] = error_help.link(error)
    return response
