"""Request bodies of the hot path. A body is read when the view asks for it. Its bytes and its time are limited."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from gateway.lib.byte_budget import FREE_BYTES, BudgetExhausted, Reservation

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
BODY_TIMEOUT_S = 30.0


class BodyRefused(Exception):
    """The request is refused before its body is read to the end. `retry_after_s` is None if a retry does not help."""

    def __init__(self, status: int, error: str, description: str, *, retry_after_s: int | None = None) -> None:
        super().__init__(error)
        self.status, self.error, self.description, self.retry_after_s = status, error, description, retry_after_s

    @classmethod
    def too_large(cls, max_bytes: int) -> BodyRefused:
        return cls(413, "body_too_large", f"The body may hold {max_bytes} bytes.")


class ClientDisconnected(Exception):
    """The client closed the connection before it sent the whole request, or before the request was answered."""


class IncomingBody:
    """A body that has not arrived completely. `declared_bytes`: its Content-Length, or None without that header."""

    def __init__(self, receive: Receive, *, declared_bytes: int | None, max_bytes: int) -> None:
        self._receive = receive
        self.declared_bytes = declared_bytes
        self._max_bytes = max_bytes

    async def read(self, new_reservation: Callable[[], Reservation]) -> bytes:
        """Wait for the whole body and return it. Raises: BodyRefused; ClientDisconnected.

        A body of more than FREE_BYTES reserves its bytes. `new_reservation` makes that reservation.
        """
        try:
            # The timeout includes the wait for the first part: a client may send its headers and no body.
            async with asyncio.timeout(BODY_TIMEOUT_S):
                return await self._join_parts(new_reservation)
        except TimeoutError:
            raise BodyRefused(408, "request_timeout", "The body did not arrive in time.") from None

    async def _join_parts(self, new_reservation: Callable[[], Reservation]) -> bytes:
        chunks: list[bytes] = []
        size = 0
        reservation: Reservation | None = None
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnected
            chunk: bytes = message.get("body", b"")
            size += len(chunk)
            if size > self._max_bytes:
                raise BodyRefused.too_large(self._max_bytes)
            chunks.append(chunk)
            is_whole = not message.get("more_body")
            if size > FREE_BYTES:
                reservation = reservation or new_reservation()
                await self._reserve(reservation, size, is_whole=is_whole)
            if is_whole:
                return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    async def _reserve(self, reservation: Reservation, size: int, *, is_whole: bool) -> None:
        try:
            await reservation.keep_up(size, self.declared_bytes or self._max_bytes, is_whole=is_whole)
        except BudgetExhausted:
            text = "Too many large requests are under way. Try again."
            raise BodyRefused(503, "overloaded", text, retry_after_s=2) from None
