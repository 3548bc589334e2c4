"""Refusals of the ASGI layers in front of Django. Spec: D1"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from gateway.lib import error_responses
from gateway.middleware.request_id import HEADER, request_id_of

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]


class Refusal(Exception):
    """Ends a request before Django, or before its body is read to the end. `retry_after_s`: seconds, None when a retry
    cannot help."""

    def __init__(self, status: int, error: str, message: str, *, retry_after_s: int | None = None) -> None:
        super().__init__(error)
        self.status, self.error, self.message, self.retry_after_s = status, error, message, retry_after_s

    @classmethod
    def too_large(cls, max_bytes: int) -> Refusal:
        return cls(413, "body_too_large", f"The body may hold {max_bytes} bytes.")

    @classmethod
    def too_slow(cls) -> Refusal:
        return cls(408, "request_timeout", "The body did not arrive in time.")


async def send_refusal(scope: Message, send: Send, refusal: Refusal) -> None:
    """Send the refusal and close the connection, without reading the rest of the body."""
    request_id = request_id_of(dict(scope["headers"]).get(HEADER.lower().encode(), b"").decode("latin-1"))
    body = json.dumps(error_responses.body(refusal.error, refusal.message, request_id)).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        (b"connection", b"close"),
        (HEADER.lower().encode(), request_id.encode()),
    ]
    if refusal.retry_after_s is not None:
        headers.append((b"retry-after", str(refusal.retry_after_s).encode()))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
