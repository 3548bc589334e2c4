"""The limit of concurrent requests outside /v1. Each takes a thread, and most take a database connection.

Further requests wait in the event loop, where a wait is cheap. In the queue for database connections they would cause
errors in other requests. The hot path does not pass this limit.
"""

from __future__ import annotations

import asyncio

from django.conf import settings

from gateway.lib import body_budgets
from gateway.lib.byte_budget import FREE_BYTES, BudgetExhausted, Reservation
from gateway.lib.client_address import address_key, client_address
from gateway.lib.waiting_line import WaitingLine
from gateway.middleware.refusal import Application, Message, Receive, Refusal, Send

MAX_WAITING = 1_000


class ConcurrencyLimit:
    """ASGI middleware: `size` requests run at once, others wait at most `wait_s` seconds for a slot.

    A request takes a slot after its body has arrived, so a slow sender holds none.
    """

    def __init__(self, application: Application, *, size: int, wait_s: float) -> None:
        self._application = application
        self._free = size
        self._wait_s = wait_s
        self._line: WaitingLine[None] = WaitingLine()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Raises: Refusal (503) without a slot in time; the outer middleware sends it."""
        reservation = body_budgets.pages().new_reservation(_sender(scope))
        try:
            body = await _read_body(receive, reservation)
            if body is None:
                return  # the client disconnected
            await self._acquire()
            try:
                await self._application(scope, _replayed(body, receive), send)
            finally:
                self._release()
        finally:
            reservation.release()

    async def _acquire(self) -> None:
        if self._free > 0:
            self._free -= 1
            return
        busy = Refusal(503, "overloaded", "Too many requests are waiting. Try again in a moment.", retry_after_s=2)
        if len(self._line) >= MAX_WAITING:
            raise busy
        try:
            await self._line.wait(None, self._release, asyncio.get_running_loop().time() + self._wait_s)
        except TimeoutError:
            raise busy from None

    def _release(self) -> None:
        if not self._line.hand_over_to_next():
            self._free += 1


def _sender(scope: Message) -> str:
    """The owner of a page's body in the budget for large bodies: its address, before the sign-in is known."""
    forwarded = b",".join(value for name, value in scope["headers"] if name == b"x-forwarded-for").decode("latin-1")
    peer = (scope.get("client") or ("",))[0]
    return address_key(client_address(peer, forwarded, settings.TRUSTED_PROXIES))


async def _read_body(receive: Receive, reservation: Reservation) -> bytes | None:
    """The body; a large one counts in `reservation`. None if the client disconnected.

    Raises: Refusal (503) when the budget has no bytes for a large one in time.
    """
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        is_whole = not message.get("more_body", False)
        if size > FREE_BYTES:
            try:
                await reservation.keep_up(size, settings.WEB_BODY_BYTES, is_whole=is_whole)
            except BudgetExhausted:
                text = "Too many large requests are under way. Try again in a moment."
                raise Refusal(503, "overloaded", text, retry_after_s=2) from None
        if is_whole:
            return b"".join(parts)


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
