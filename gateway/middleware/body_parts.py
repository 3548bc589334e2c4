"""Reads a request's body part by part."""

from __future__ import annotations

from collections.abc import Callable

from gateway.lib.byte_budget import FREE_BYTES, Reservation
from gateway.middleware.refusal import Receive, Refusal


class ClientDisconnected(Exception):
    """The client closed the connection before it sent the whole request, or before the request was answered."""


async def join_parts(
    receive: Receive, new_reservation: Callable[[], Reservation], *, expected_bytes: int, max_bytes: int
) -> bytes:
    """The whole body. One of more than FREE_BYTES reserves its bytes; `new_reservation` makes that reservation.

    Raises: ClientDisconnected; Refusal (413); BudgetExhausted.
    """
    parts: list[bytes] = []
    size = 0
    reservation: Reservation | None = None
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnected
        part: bytes = message.get("body", b"")
        size += len(part)
        if size > max_bytes:
            raise Refusal.too_large(max_bytes)
        parts.append(part)
        is_whole = not message.get("more_body")
        if size > FREE_BYTES:
            reservation = reservation or new_reservation()
            await reservation.keep_up(size, expected_bytes, is_whole=is_whole)
        if is_whole:
            return parts[0] if len(parts) == 1 else b"".join(parts)
