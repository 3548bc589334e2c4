"""The limit of concurrent requests outside /v1. Each takes a thread, and most take a database connection.

Further requests wait in the event loop, where a wait is cheap. In the queue for database connections they would cause
errors in other requests. The hot path does not pass this limit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from django.conf import settings

from gateway.lib import body_budgets
from gateway.lib.byte_budget import BudgetExhausted, Reservation
from gateway.lib.client_address import address_key, client_address
from gateway.lib.waiting_line import Slots
from gateway.middleware.body_parts import ClientDisconnected, join_parts
from gateway.middleware.refusal import Application, Message, Receive, Refusal, Send

MAX_WAITING = 1_000
EXTENSION = "gateway.slot"  # of the ASGI scope


class ConcurrencyLimit:
    """ASGI middleware: `size` requests run at once, others wait at most `wait_s` seconds for a slot.

    A request takes a slot after its body has arrived, so a slow sender holds none.
    """

    def __init__(self, application: Application, *, size: int, wait_s: float) -> None:
        self._application = application
        self._slots = Slots(size, max_waiting=MAX_WAITING)
        self._wait_s = wait_s

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Raises: Refusal (503) without a slot in time; the outer middleware sends it."""
        reservation = body_budgets.pages().new_reservation(_sender(scope))
        try:
            body = await _read_body(receive, reservation)
            await self._acquire()
            slot = _HeldSlot(self._slots)
            try:
                await self._application(_with_slot(scope, slot), _replayed(body, receive), send)
            finally:
                slot.release()
        except ClientDisconnected:
            return
        finally:
            reservation.release()

    async def _acquire(self) -> None:
        if self._slots.try_acquire():
            return
        try:
            await self._slots.acquire(asyncio.get_running_loop().time() + self._wait_s)
        except TimeoutError:
            text = "Too many requests are waiting. Try again in a moment."
            raise Refusal(503, "overloaded", text, retry_after_s=2) from None


class _HeldSlot:
    __slots__ = ("_slots",)

    def __init__(self, slots: Slots) -> None:
        self._slots: Slots | None = slots

    def release(self) -> None:
        if self._slots is not None:
            self._slots.release()
            self._slots = None


def release_slot_early(scope: Mapping[str, Any]) -> None:
    """Release the slot of a request whose body is long: its reader may be slow. Call it in the event loop."""
    slot: _HeldSlot | None = (scope.get("extensions") or {}).get(EXTENSION)
    if slot is not None:
        slot.release()


def _with_slot(scope: Message, slot: _HeldSlot) -> Message:
    return {**scope, "extensions": {**(scope.get("extensions") or {}), EXTENSION: slot}}


def _sender(scope: Message) -> str:
    """The owner of a page's body in the budget for large bodies: its address, before the sign-in is known."""
    forwarded = b",".join(value for name, value in scope["headers"] if name == b"x-forwarded-for").decode("latin-1")
    peer = (scope.get("client") or ("",))[0]
    return address_key(client_address(peer, forwarded, settings.TRUSTED_PROXIES))


async def _read_body(receive: Receive, reservation: Reservation) -> bytes:
    """The body; a large one counts in `reservation`. Raises: ClientDisconnected; Refusal."""
    max_bytes = settings.WEB_BODY_BYTES
    try:
        return await join_parts(receive, lambda: reservation, expected_bytes=max_bytes, max_bytes=max_bytes)
    except BudgetExhausted:
        text = "Too many large requests are in progress. Try again in a moment."
        raise Refusal(503, "overloaded", text, retry_after_s=2) from None


def _replayed(body: bytes, receive: Receive) -> Receive:
    """The body in one message, then the later messages of the connection."""
    first: Message | None = {"type": "http.request", "body": body, "more_body": False}

    async def replayed() -> Message:
        nonlocal first
        if first is None:
            return await receive()
        message, first = first, None
        return message

    return replayed
