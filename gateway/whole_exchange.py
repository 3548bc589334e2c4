"""A request that came whole and an answer that is whole, past the messages of ASGI.

Almost every call is one packet in and one out. For those our server puts a `WholeExchange` into the extensions of the
scope: without a timer for a body that is there, and without judging each header of ours by regular expressions.
Imported by uvicorn before the application: no Django in here.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

EXTENSION = "gateway.whole_exchange"


class WholeExchange:
    """One request of uvicorn's. Both methods leave everything to ASGI's `receive` and `send` when they say no."""

    __slots__ = ("_cycle",)

    def __init__(self, cycle: RequestResponseCycle) -> None:
        # Weakly: the cycle owns the scope that this lies in, and a ring would keep every request, its bearer too, in
        # memory until the next garbage collection, which then holds up all calls.
        self._cycle = weakref.ref(cycle)

    def body(self) -> bytes | None:
        """The whole body, if all of it has come; `receive` then waits for what comes next."""
        cycle = self._cycle()
        if cycle is None or cycle.more_body or cycle.disconnected or cycle.response_complete:
            return None
        cycle.message_event.clear()
        body, cycle.body = cycle.body, bytearray()
        return bytes(body)

    def answer(self, status: int, headers: Iterable[tuple[bytes, bytes]], body: bytes) -> bool:
        """Send the whole answer, if that is all there is to it; the headers name the length and no Connection."""
        cycle = self._cycle()
        if cycle is None or cycle.response_started or cycle.disconnected or cycle.flow.write_paused:
            return False
        if not cycle.keep_alive or cycle.scope["method"] == "HEAD":
            return False
        lines = [b"%b: %b\r\n" % header for header in (*cycle.default_headers, *headers)]
        head = b"%b%b\r\n" % (STATUS_LINE[status], b"".join(lines))
        if head.count(b"\n") != len(lines) + 2 or head.count(b"\r") != len(lines) + 2:
            return False  # a line break within a header: the server refuses that in its own way
        cycle.response_started = cycle.response_complete = True
        cycle.waiting_for_100_continue = False
        cycle.transport.write(head + body)
        cycle.message_event.set()
        cycle.on_response()
        return True
