"""uvicorn's HTTP protocol with a bound on what comes before a body: until the headers are whole, nothing of ours runs.

Without it a client may send headers for ever, in memory and in time. A reverse proxy would stop that, but need not be
there. Nor do trailers behind a body count as headers here: nobody has checked or removed them on the way, and they are
no better bounded. Imported by uvicorn before the application: no Django in here.
"""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from gateway.connection_limit import ConnectionLimit, Place, limit
from gateway.whole_exchange import EXTENSION, WholeExchange

HEAD_BYTES = 64 * 1024  # what came in the same read as the first part is not counted
HEAD_TIMEOUT_S = 30.0
RESERVED_HEAD_TIMEOUT_S = 5.0  # past the limit of connections, where places are few
# A client that takes nothing of what was written for it: the answer is in memory until it does.
UNREAD_TIMEOUT_S = 60.0
# Without a byte of a body among them: trailers and chunk extensions without end.
FRAMING_BYTES = 64 * 1024
# Of a body that was answered before it came whole: clients send all of it before they read the answer. It is dropped as
# it comes, up to a little more than the largest body of the hot path.
DROPPED_BYTES = 5 * 1024 * 1024
# Of bodies that came with their heads and that nothing has asked for yet, over all connections. Of each one the server
# takes up to 64 KiB, and what came in the same read.
HELD_BYTES = 48 * 1024 * 1024
HELD_FREE_BYTES = 64 * 1024
PROBES = frozenset({"/health", "/ready"})
OVERLOADED = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 2\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


_NONE, _RESERVED = Place.NONE, Place.RESERVED  # asked for with every packet


class _Held:
    """Bytes of bodies of this process that wait to be asked for, or a little more: see _check_held.

    No member of the protocol's class: writing one makes the interpreter forget what it has found out about the class.
    """

    __slots__ = ("bytes",)

    def __init__(self) -> None:
        self.bytes = 0


held = _Held()


class BoundedHttpProtocol(HttpToolsProtocol):
    """One connection."""

    _timer: asyncio.TimerHandle | None = None
    _unread_timer: asyncio.TimerHandle | None = None
    _running: RequestResponseCycle | None = None
    _in_head = False
    _head_bytes = 0
    _framing_bytes = 0
    _dropped_bytes = 0
    _limit: ConnectionLimit
    _place = Place.NONE
    turn_away: ClassVar[Any] = None  # the application that answers 503 past the limit of connections

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client that connects and says nothing is given up too."""
        super().connection_made(transport)
        self._limit = limit
        self._place = limit.enter(self._peer())
        if self._place is _NONE:
            transport.write(OVERLOADED)
            transport.close()
            return
        patience_s = HEAD_TIMEOUT_S if self._place is Place.REGULAR else RESERVED_HEAD_TIMEOUT_S
        self._timer = self.loop.call_later(patience_s, self._too_late)

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more, and nobody: the server tells the request that came last only."""
        self._limit.leave(self._peer(), self._place)
        self._place = Place.NONE
        self._stop_timer()
        self.resume_writing()
        for cycle in (self._running, *(queued for queued, _ in self.pipeline)):
            if cycle is not None and not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()
        self._running = None
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """The client does not read: so far the answer waits, but not for ever."""
        super().pause_writing()
        if self._unread_timer is None:
            self._unread_timer = self.loop.call_later(UNREAD_TIMEOUT_S, self.transport.abort)

    def resume_writing(self) -> None:
        """It has read."""
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        """Count what arrives while a head is not whole, or brings no body."""
        if self._place is _NONE:
            return
        self._framing_bytes += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if not self._in_head:
            self._between_heads()
            return
        self._head_bytes += len(data)
        if self._head_bytes > HEAD_BYTES:
            self._refuse(b"431 Request Header Fields Too Large")
        elif self._timer is None:
            self._timer = self.loop.call_later(HEAD_TIMEOUT_S, self._too_late)

    def _between_heads(self) -> None:
        if self._framing_bytes > FRAMING_BYTES:
            if self.cycle is not None and not self.cycle.response_started:
                self._refuse(b"431 Request Header Fields Too Large")
            else:
                self.transport.close()
        elif self.timeout_keep_alive_task is None and self._timer is None and self._is_idle():
            # The rest of a body that nobody reads, or an empty line: it has ended the server's wait for the next one.
            self._timer = self.loop.call_later(HEAD_TIMEOUT_S, self._too_late)

    def on_message_begin(self) -> None:
        """The parser's word that a request begins."""
        self._in_head = True
        self._head_bytes = self._framing_bytes = self._dropped_bytes = 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """The parser's word of a header, or of a trailer."""
        if self._in_head:
            super().on_header(name, value)

    def on_body(self, body: bytes) -> None:
        """The parser's word of a piece of a body."""
        self._framing_bytes = 0
        if self.cycle.response_complete:
            self._dropped_bytes += len(body)
            if self._dropped_bytes > DROPPED_BYTES:
                self.transport.close()
        super().on_body(body)
        held.bytes += len(body)
        if held.bytes > HELD_BYTES and len(self.cycle.body) > HELD_FREE_BYTES:
            self._check_held()

    def _check_held(self) -> None:
        """End this connection if too many bodies wait to be asked for. The sum is made anew, without what was read."""
        cycles = (each.cycle for each in self.connections if isinstance(each, BoundedHttpProtocol))
        held.bytes = sum(len(cycle.body) for cycle in cycles if cycle is not None)
        if held.bytes <= HELD_BYTES:
            return
        self.cycle.body = bytearray()
        if self.cycle.response_started:
            self.transport.close()
        else:
            self._refuse(b"503 Service Unavailable\r\nretry-after: 2")

    def on_headers_complete(self) -> None:
        """The parser's word that the head is whole."""
        self._in_head = False
        self._framing_bytes = 0
        if self._timer is not None:
            self._stop_timer()
        super().on_headers_complete()

    def _unsupported_upgrade_warning(self) -> None:
        """Silent: a request that offers another protocol is answered like any other, and strangers write no log."""

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        """A request begins."""
        self._running = cycle
        if self._place is _RESERVED:
            cycle.keep_alive = False
            if cycle.scope["path"] not in PROBES and self.turn_away is not None:
                app = self.turn_away
        cycle.scope["extensions"] = {EXTENSION: WholeExchange(cycle)}  # type: ignore[dict-item]
        super()._start_asgi_task(cycle, app)

    def _peer(self) -> str:
        return self.client[0] if self.client else ""

    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _too_late(self) -> None:
        self._timer = None
        if not self._is_idle():
            self._timer = self.loop.call_later(HEAD_TIMEOUT_S, self._too_late)  # an answer is on its way: let it pass
        elif self._in_head:
            self._refuse(b"408 Request Timeout")
        else:
            self.transport.close()

    def _refuse(self, status: bytes) -> None:
        self._stop_timer()
        self.transport.write(b"HTTP/1.1 " + status + b"\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
        self.transport.close()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
