"""Reads a complete request and writes a complete answer without ASGI messages.   docs/decisions/0032"""

from __future__ import annotations

import weakref
from collections.abc import Iterable

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

# Imported by uvicorn before the application: no Django here.
EXTENSION = "gateway.uvicorn_fast_path"


class FastPath:
    """One request of uvicorn. The caller uses ASGI's `receive` and `send` after None or False."""

    __slots__ = ("_cycle",)

    def __init__(self, cycle: RequestResponseCycle) -> None:
        # Weak, because the cycle owns the scope that holds this object. A reference cycle would keep every request,
        # with its bearer, in memory until a garbage collection, which stops all calls.   docs/decisions/0011
        self._cycle = weakref.ref(cycle)

    def take_body(self) -> bytes | None:
        """The body if it is complete, else None; `receive` then waits for the disconnect."""
        cycle = self._cycle()
        if cycle is None or cycle.more_body or cycle.disconnected or cycle.response_complete:
            return None
        cycle.message_event.clear()
        body, cycle.body = cycle.body, bytearray()
        return bytes(body)

    def send_response(self, status: int, headers: Iterable[tuple[bytes, bytes]], body: bytes) -> bool:
        """Send a complete answer, or return False. The headers include the length and no Connection."""
        cycle = self._cycle()
        if cycle is None or cycle.response_started or cycle.disconnected or cycle.flow.write_paused:
            return False
        if not cycle.keep_alive or cycle.scope["method"] == "HEAD":
            return False
        lines = [b"%b: %b\r\n" % header for header in (*cycle.default_headers, *headers)]
        # One write, and no regular expression for each header.
        head = b"%b%b\r\n" % (STATUS_LINE[status], b"".join(lines))
        if head.count(b"\n") != len(lines) + 2 or head.count(b"\r") != len(lines) + 2:
            return False  # a line break in a header: uvicorn refuses it
        cycle.response_started = cycle.response_complete = True
        cycle.waiting_for_100_continue = False
        cycle.transport.write(head + body)
        cycle.message_event.set()
        cycle.on_response()
        return True
