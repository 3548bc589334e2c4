"""Browser pages that may call: the Origin header, preflights and CORS headers."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpResponse

from gateway.hot_path_request import HotPathRequest
from proxy.views import responses
from proxy.views.responses import HttpError

MAX_ORIGIN_CHARACTERS = 300  # a host name has 253 at most
MAX_PARAM_HEADERS = 50  # of one tool
MAX_ASKED_HEADERS = 100  # of a preflight, which nobody counts; the rest is not read
_is_param_header = re.compile(r"mcp-param-[!#$%&'*+\-.^_`|~0-9a-z]{1,100}", re.IGNORECASE).fullmatch
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


def check_origin(request: HotPathRequest) -> None:
    """Only our pages, this computer's and configured ones may call from a browser (DNS rebinding). Spec: A.2"""
    origin = request.META.get("HTTP_ORIGIN")
    if origin is not None and not _acceptable(origin):
        raise HttpError(403, "forbidden_origin", "This origin may not call the gateway.")


def preflight_response(request: HotPathRequest, methods: str) -> HttpResponse:
    response = responses.preflight()
    response.headers["Access-Control-Allow-Methods"] = f"{methods}, OPTIONS"
    asked = request.META.get("HTTP_ACCESS_CONTROL_REQUEST_HEADERS")
    response.headers["Access-Control-Allow-Headers"] = ", ".join([responses.ALLOWED_HEADERS, *_param_headers(asked)])
    response.headers["Access-Control-Max-Age"] = "600"
    for name, value in cors_headers(request.META.get("HTTP_ORIGIN")).items():
        response.headers[name] = value
    return response


def _param_headers(asked: str | None) -> list[str]:
    """The Mcp-Param-* headers of a preflight: their names come from tools, so no list has them."""
    asked_names = (asked or "").split(",", MAX_ASKED_HEADERS)[:MAX_ASKED_HEADERS]
    names = [name.strip() for name in asked_names]
    return [name for name in names if _is_param_header(name)][:MAX_PARAM_HEADERS]


def cors_headers(origin: str | None) -> dict[str, str]:
    """{} for an origin that may not call."""
    if origin is None or not _acceptable(origin):
        return {}
    return {
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Expose-Headers": responses.EXPOSED_HEADERS,
        "Vary": "Origin",
    }


def _acceptable(origin: str) -> bool:
    if len(origin) > MAX_ORIGIN_CHARACTERS:  # urllib caches parsed addresses
        return False
    if origin == settings.BASE_URL or origin in settings.ALLOWED_ORIGINS:
        return True
    try:
        return urlsplit(origin).hostname in _LOOPBACK
    except ValueError:
        return False
