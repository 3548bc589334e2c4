"""Refusals of the ASGI layers in front of Django. Spec: D1"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from gateway.lib import error_help, error_responses
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
        return cls(413, "body_too_large", f"The body can have at most {max_bytes} bytes.")

    @classmethod
    def too_slow(cls) -> Refusal:
        return cls(408, "request_timeout", "The body did not arrive in time.")


SendRefusal = Callable[[Message, Send, Refusal], Awaitable[None]]


async def send_refusal(scope: Message, send: Send, refusal: Refusal) -> None:
    """Send the refusal and close the connection, without reading the rest of the body."""
    request_id = _request_id(scope)
    body = error_responses.body(refusal.error, refusal.message, request_id)
    await _send(send, refusal, body, request_id)


async def send_oauth_refusal(scope: Message, send: Send, refusal: Refusal) -> None:
    """The same in OAuth's form, and readable from every origin. Spec: RFC 6749 5.2 · D28"""
    body = error_responses.oauth_body(refusal.status, refusal.message)
    open_to_all = (b"access-control-allow-origin", b"*")
    await _send(send, refusal, body, _request_id(scope), (b"pragma", b"no-cache"), open_to_all)


def _request_id(scope: Message) -> str:
    return request_id_of(dict(scope["headers"]).get(HEADER.lower().encode(), b"").decode("latin-1"))


async def _send(
    send: Send, refusal: Refusal, fields: dict[str, Any], request_id: str, *more: tuple[bytes, bytes]
) -> None:
    body = json.dumps(fields).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        (b"link", error_help.link(refusal.error).encode()),
        (b"connection", b"close"),
        (HEADER.lower().encode(), request_id.encode()),
        *more,
    ]
    if refusal.retry_after_s is not None:
        headers.append((b"retry-after", str(refusal.retry_after_s).encode()))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
