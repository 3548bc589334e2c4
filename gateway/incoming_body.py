"""Request bodies of the hot path. A body is read when the view asks for it. Its bytes and its time are limited."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from gateway.lib.byte_budget import BudgetExhausted, Reservation
from gateway.middleware.body_parts import join_parts
from gateway.middleware.refusal import Receive, Refusal

BODY_TIMEOUT_S = 30.0


class IncomingBody:
    """A body that has not arrived completely. `declared_bytes`: its Content-Length, or None without that header."""

    def __init__(self, receive: Receive, *, declared_bytes: int | None, max_bytes: int) -> None:
        self._receive = receive
        self.declared_bytes = declared_bytes
        self._max_bytes = max_bytes

    async def read(self, new_reservation: Callable[[], Reservation]) -> bytes:
        """Wait for the whole body and return it. Raises: Refusal; ClientDisconnected."""
        expected_bytes, max_bytes = self.declared_bytes or self._max_bytes, self._max_bytes
        try:
            # The timeout includes the wait for the first part: a client may send its headers and no body.
            async with asyncio.timeout(BODY_TIMEOUT_S):
                return await join_parts(
                    self._receive, new_reservation, expected_bytes=expected_bytes, max_bytes=max_bytes
                )
        except TimeoutError:
            raise Refusal.too_slow() from None
        except BudgetExhausted:
            text = "Too many large requests are in progress. Try again."
            raise Refusal(503, "overloaded", text, retry_after_s=2) from None
