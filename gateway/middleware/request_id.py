"""The id of a request, for its answer, the logs and audit rows, and the client's address."""

from __future__ import annotations

import os
from collections.abc import Callable

import structlog
from django.conf import settings
from django.http import HttpRequest, HttpResponse

from gateway.lib.client_address import client_address, is_trusted_proxy
from gateway.lib.request_ids import is_request_id

HEADER = "X-Request-Id"


def request_id_of(sent: str | None) -> str:
    """The caller's id if it has an acceptable form, else a new one. Spec: D25"""
    return sent if sent and is_request_id(sent) else os.urandom(16).hex()


class RequestIdMiddleware:
    """Sets `request.request_id` and `request.ip_address`, and binds both to the log context."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        request.request_id = request_id_of(request.headers.get(HEADER))  # type: ignore[attr-defined]
        peer = request.META.get("REMOTE_ADDR", "")
        request.ip_address = client_address(  # type: ignore[attr-defined]
            peer, request.headers.get("X-Forwarded-For"), settings.TRUSTED_PROXIES
        )
        if not is_trusted_proxy(peer, settings.TRUSTED_PROXIES):
            request.META.pop("HTTP_X_FORWARDED_PROTO", None)  # Django would believe it from any peer
        with structlog.contextvars.bound_contextvars(
            request_id=request.request_id,  # type: ignore[attr-defined]
            ip_address=request.ip_address,  # type: ignore[attr-defined]
        ):
            response = self._get_response(request)
        response[HEADER] = request.request_id  # type: ignore[attr-defined]
        return response
