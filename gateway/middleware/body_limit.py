"""How large a body outside /v1 may be, and how long it may take: Django alone would write any of it to the disk.

Views still refuse earlier what is too large for them; this bounds what anybody at all can make us read.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from gateway.middleware.request_id import HEADER, request_id_of

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]
BODY_TIMEOUT_S = 30.0


class _Refused(Exception):
    def __init__(self, status: int, error: str, message: str) -> None:
        super().__init__(error)
        self.status, self.error, self.message = status, error, message


class BodyLimit:
    """An ASGI application that reads no more than `max_bytes` of a body for the one inside. Spec: D18"""

    def __init__(self, application: Application, *, max_bytes: int) -> None:
        self._application = application
        self._max_bytes = max_bytes

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """One request."""
        headers = dict(scope["headers"])
        try:
            declared = headers.get(b"content-length", b"")
            if declared.isdigit() and int(declared) > self._max_bytes:
                raise self._too_large()
            # Django reads the whole body before it answers, so a refusal never comes in the middle of an answer.
            await self._application(scope, self._bounded(receive), send)
        except _Refused as refusal:
            sent_id = headers.get(HEADER.lower().encode(), b"").decode("latin-1")
            await _answer(send, refusal, request_id_of(sent_id))

    def _bounded(self, receive: Receive) -> Receive:
        left = self._max_bytes
        is_complete = False
        due_at_s = asyncio.get_running_loop().time() + BODY_TIMEOUT_S

        async def bounded() -> Message:
            nonlocal left, is_complete
            if is_complete:
                return await receive()
            try:
                async with asyncio.timeout_at(due_at_s):
                    message = await receive()
            except TimeoutError:
                raise _Refused(408, "request_timeout", "The body did not arrive in time.") from None
            left -= len(message.get("body", b""))
            if left < 0:
                raise self._too_large()
            is_complete = not message.get("more_body", False)
            return message

        return bounded

    def _too_large(self) -> _Refused:
        return _Refused(413, "body_too_large", f"The body may hold {self._max_bytes} bytes.")


async def _answer(send: Send, refusal: _Refused, request_id: str) -> None:
    body = json.dumps({"error": refusal.error, "message": refusal.message, "requestId": request_id}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        (b"connection", b"close"),  # the rest of the body is not waited for
        (HEADER.lower().encode(), request_id.encode()),
    ]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
