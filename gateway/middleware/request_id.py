"""One id per request, echoed in the answer, the logs and the audit rows; with it, where the request came from."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

import structlog
from django.conf import settings
from django.http import HttpRequest, HttpResponse

from gateway.lib.client_address import client_address, is_trusted_proxy

HEADER = "X-Request-Id"
_ACCEPTABLE = re.compile(r"[A-Za-z0-9._-]{1,64}\Z")


def request_id_of(sent: str | None) -> str:
    """The caller's own id when it is harmless, else a new one. Spec: D25"""
    return sent if sent and _ACCEPTABLE.match(sent) else os.urandom(16).hex()


class RequestIdMiddleware:
    """Sets `request.request_id` and `request.ip_address`, and binds both to the log context.

    X-Forwarded-Proto of a peer that is no trusted proxy is dropped: Django would believe every peer.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        request.request_id = request_id_of(request.headers.get(HEADER))  # type: ignore[attr-defined]
        peer = request.META.get("REMOTE_ADDR", "")
        request.ip_address = client_address(  # type: ignore[attr-defined]
            peer, request.headers.get("X-Forwarded-For"), settings.TRUSTED_PROXIES
        )
        if not is_trusted_proxy(peer, settings.TRUSTED_PROXIES):
            request.META.pop("HTTP_X_FORWARDED_PROTO", None)
        with structlog.contextvars.bound_contextvars(
            request_id=request.request_id,  # type: ignore[attr-defined]
            ip_address=request.ip_address,  # type: ignore[attr-defined]
        ):
            response = self._get_response(request)
        response[HEADER] = request.request_id  # type: ignore[attr-defined]
        return response
