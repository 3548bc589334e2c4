from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse


class ResponseHeadersMiddleware:
    """Sets `Cache-Control: no-store` unless a view chose another value, and Permissions-Policy. Spec: D27"""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self._get_response(request)
        if not request.path_info.startswith("/static/"):
            response.headers.setdefault("Cache-Control", "no-store")
        response.headers.setdefault("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
        return response
