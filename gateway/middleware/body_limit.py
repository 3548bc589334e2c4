"""The limit of bodies outside /v1, in bytes and in time."""

from __future__ import annotations

import asyncio

from gateway.lib.declared_length import declared_length
from gateway.middleware.refusal import Application, Message, Receive, Refusal, Send, SendRefusal, send_refusal

# Django alone would write a body of any size to the disk. Views may set lower limits.
BODY_TIMEOUT_S = 30.0  # for the whole body


class BodyLimit:
    """ASGI middleware that reads at most `max_bytes` of a body. Spec: D18"""

    def __init__(self, application: Application, *, max_bytes: int, send_refusal: SendRefusal = send_refusal) -> None:
        self._application = application
        self._max_bytes = max_bytes
        self._send_refusal = send_refusal

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        try:
            header = dict(scope["headers"]).get(b"content-length", b"").decode("latin-1")
            declared = declared_length(header)
            if header and declared is None:  # Django would fail at it
                raise Refusal(400, "bad_request", "Content-Length must be a number.")
            if declared is not None and declared > self._max_bytes:
                raise Refusal.too_large(self._max_bytes)
            # The whole body is read before the answer begins, so a refusal never interrupts an answer.
            await self._application(scope, self._bounded(receive), send)
        except Refusal as refusal:
            await self._send_refusal(scope, send, refusal)

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
                raise Refusal.too_slow() from None
            left -= len(message.get("body", b""))
            if left < 0:
                raise Refusal.too_large(self._max_bytes)
            is_complete = not message.get("more_body", False)
            return message

        return bounded
