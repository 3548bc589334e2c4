"""The body of a request on the hot path, read when the view asks for it: bounded in bytes and in time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from gateway.lib.byte_budget import FREE_BYTES, BudgetExhausted, Hold

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
BODY_TIMEOUT_S = 30.0
# Bytes taken from the budget at a time for a body that does not say its length.
STEP_BYTES = 256 * 1024


class BodyRefused(Exception):
    """The body is not read, or no further. `retry_after_s`: seconds, None when trying again is no use."""

    def __init__(self, status: int, error: str, description: str, *, retry_after_s: int | None = None) -> None:
        super().__init__(error)
        self.status, self.error, self.description, self.retry_after_s = status, error, description, retry_after_s

    @classmethod
    def too_large(cls, max_bytes: int) -> BodyRefused:
        """413."""
        return cls(413, "body_too_large", f"The body may hold {max_bytes} bytes.")


class ClientGone(Exception):
    """The client closed the connection before its request was complete, or answered."""


class IncomingBody:
    """A body that has not come yet, or not all of it. `declared_bytes` is None if the head does not say."""

    def __init__(self, receive: Receive, *, declared_bytes: int | None, max_bytes: int) -> None:
        self._receive = receive
        self.declared_bytes = declared_bytes
        self._max_bytes = max_bytes

    async def read(self, hold: Hold) -> bytes:
        """The whole body; `hold` then keeps its bytes, if there are more than FREE_BYTES.

        Raises: BodyRefused; ClientGone.
        """
        if (self.declared_bytes or 0) > FREE_BYTES:
            await self._make_room(hold, self.declared_bytes or 0)
        try:
            # The first part counts as well: a client may send its headers and nothing else.
            async with asyncio.timeout(BODY_TIMEOUT_S):
                return await self._join_parts(hold)
        except TimeoutError:
            raise BodyRefused(408, "request_timeout", "The body did not arrive in time.") from None

    async def _join_parts(self, hold: Hold) -> bytes:
        chunks: list[bytes] = []
        size = 0
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            chunk: bytes = message.get("body", b"")
            size += len(chunk)
            if size > self._max_bytes:
                raise BodyRefused.too_large(self._max_bytes)
            chunks.append(chunk)
            if not message.get("more_body"):
                return chunks[0] if len(chunks) == 1 else b"".join(chunks)
            if size > max(FREE_BYTES, hold.bytes):
                await self._make_room(hold, min(size + STEP_BYTES, self._max_bytes))

    async def _make_room(self, hold: Hold, count: int) -> None:
        try:
            await hold.grow_to(count)
        except BudgetExhausted:
            text = "Too many large requests are under way. Try again."
            raise BodyRefused(503, "overloaded", text, retry_after_s=2) from None
