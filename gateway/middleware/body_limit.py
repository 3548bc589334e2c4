"""How large a body outside /v1 may be, and how long it may take: Django alone would write any of it to the disk.

Views still refuse earlier what is too large for them; this bounds what anybody at all can make us read.
"""

from __future__ import annotations

import asyncio

from gateway.middleware.refusal import Application, Message, Receive, Refusal, Send, answer

BODY_TIMEOUT_S = 30.0


class BodyLimit:
    """An ASGI application that reads no more than `max_bytes` of a body for the one inside. Spec: D18"""

    def __init__(self, application: Application, *, max_bytes: int) -> None:
        self._application = application
        self._max_bytes = max_bytes

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """One request."""
        try:
            declared = dict(scope["headers"]).get(b"content-length", b"")
            if declared.isdigit() and int(declared) > self._max_bytes:
                raise self._too_large()
            # The whole body is read before anything is answered: a refusal never comes in the middle of an answer.
            await self._application(scope, self._bounded(receive), send)
        except Refusal as refusal:
            await answer(scope, send, refusal)

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
                raise Refusal(408, "request_timeout", "The body did not arrive in time.") from None
            left -= len(message.get("body", b""))
            if left < 0:
                raise self._too_large()
            is_complete = not message.get("more_body", False)
            return message

        return bounded

    def _too_large(self) -> Refusal:
        return Refusal(413, "body_too_large", f"The body may hold {self._max_bytes} bytes.")
