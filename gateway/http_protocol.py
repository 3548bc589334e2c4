"""uvicorn's HTTP protocol with limits on heads, trailers and unread bodies, in bytes and in time."""

from __future__ import annotations

import asyncio
import fcntl
import sys
import termios
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from gateway import draining
from gateway.connection_limit import ConnectionLimit, ConnectionSlot, limit
from gateway.uvicorn_fast_path import EXTENSION, FastPath

# A reverse proxy would set such limits, but is not required.
# Imported by uvicorn before the application: no Django here.
HEAD_BYTES = 64 * 1024  # without bytes of the same read as the first part
# From the first byte of a head to its end. A round number: the largest head fits at 18 kbit/s.
HEAD_TIMEOUT_S = 30.0
RESERVED_HEAD_TIMEOUT_S = 5.0  # above the limit of connections, where few are reserved
UNREAD_TIMEOUT_S = 60.0  # of a client that reads nothing: its answer stays in memory until then
FRAMING_BYTES = 64 * 1024  # in a row without a byte of a body: endless trailers and chunk extensions
# Of a body that was answered early. Clients send all of it before they read the answer, so it is read and dropped, up
# to a little more than the largest body of the hot path.
DROPPED_BYTES = 5 * 1024 * 1024
# Limit of body bytes buffered before a view reads them, over all connections. uvicorn buffers 64 KiB of each, and the
# rest of its last read.
BUFFERED_BYTES = 48 * 1024 * 1024
BUFFERED_FREE_BYTES = 64 * 1024
# Of a connection without a request when the server stops. A client that has just connected is about to send one.
FIRST_REQUEST_S = 1.0
PROBE_PATHS = frozenset({"/health", "/ready"})
OVERLOADED = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 2\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


_NONE, _RESERVED = (
    ConnectionSlot.NONE,
    ConnectionSlot.RESERVED,
)  # compared with every packet: saves the lookup in the enum


# Not an attribute of the protocol's class: a write to it would invalidate the interpreter's caches for the class.
class _BufferedBytes:
    """Counter of buffered body bytes; may be a little too high (see _check_buffered)."""

    __slots__ = ("bytes",)

    def __init__(self) -> None:
        self.bytes = 0


buffered = _BufferedBytes()


class BoundedHttpProtocol(HttpToolsProtocol):
    _timer: asyncio.TimerHandle | None = None
    _unread_timer: asyncio.TimerHandle | None = None
    _running: RequestResponseCycle | None = None
    _in_head = False
    _head_bytes = 0
    _framing_bytes = 0
    _dropped_bytes = 0
    _limit: ConnectionLimit
    _slot = ConnectionSlot.NONE
    reject: ClassVar[Any] = None  # answers 503 above the limit of connections

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._limit = limit
        self._slot = limit.acquire(self._peer())
        if self._slot is _NONE:
            transport.write(OVERLOADED)
            transport.close()
            return
        # A client that connects and sends nothing times out as well.
        timeout_s = HEAD_TIMEOUT_S if self._slot is ConnectionSlot.REGULAR else RESERVED_HEAD_TIMEOUT_S
        self._timer = self.loop.call_later(timeout_s, self._on_timeout)

    def connection_lost(self, exc: Exception | None) -> None:
        self._limit.release(self._peer(), self._slot)
        self._slot = ConnectionSlot.NONE
        self._stop_timer()
        self.resume_writing()
        # uvicorn itself tells only the request that came last.
        for cycle in (self._running, *(queued for queued, _ in self.pipeline)):
            if cycle is not None and not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()
        self._running = None
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Starts the timer of UNREAD_TIMEOUT_S."""
        super().pause_writing()
        if self._unread_timer is None:
            self._unread_timer = self.loop.call_later(UNREAD_TIMEOUT_S, self.transport.abort)

    def resume_writing(self) -> None:
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        """Counts bytes of incomplete heads, and bytes that bring no body."""
        if self._slot is _NONE:
            return
        self._framing_bytes += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if not self._in_head:
            self._check_framing()
            return
        self._head_bytes += len(data)
        if self._head_bytes > HEAD_BYTES:
            self._refuse(b"431 Request Header Fields Too Large")
        elif self._timer is None:
            self._timer = self.loop.call_later(HEAD_TIMEOUT_S, self._on_timeout)

    def _check_framing(self) -> None:
        if self._framing_bytes > FRAMING_BYTES:
            if self.cycle is not None and not self.cycle.response_started:
                self._refuse(b"431 Request Header Fields Too Large")
            else:
                self.transport.close()
        elif self.timeout_keep_alive_task is None and self._timer is None and self._is_idle():
            # The rest of an unread body, or an empty line, has ended uvicorn's keep-alive timeout: start another.
            self._timer = self.loop.call_later(HEAD_TIMEOUT_S, self._on_timeout)

    def on_message_begin(self) -> None:
        self._in_head = True
        self._head_bytes = self._framing_bytes = self._dropped_bytes = 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # trailers are dropped: no proxy has checked or removed them
            super().on_header(name, value)

    def on_body(self, body: bytes) -> None:
        self._framing_bytes = 0
        if self.cycle.response_complete:
            self._dropped_bytes += len(body)
            if self._dropped_bytes > DROPPED_BYTES:
                self.transport.close()
        super().on_body(body)
        buffered.bytes += len(body)
        if buffered.bytes > BUFFERED_BYTES and len(self.cycle.body) > BUFFERED_FREE_BYTES:
            self._check_buffered()

    def _check_buffered(self) -> None:
        """Close this connection if BUFFERED_BYTES is exceeded after a new count."""
        # `buffered.bytes` only grows: the sum leaves out bodies that were read meanwhile.
        cycles = (each.cycle for each in self.connections if isinstance(each, BoundedHttpProtocol))
        buffered.bytes = sum(len(cycle.body) for cycle in cycles if cycle is not None)
        if buffered.bytes <= BUFFERED_BYTES:
            return
        self.cycle.body = bytearray()
        if self.cycle.response_started:
            self.transport.close()
        else:
            self._refuse(b"503 Service Unavailable\r\nretry-after: 2")

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._framing_bytes = 0
        if self._timer is not None:
            self._stop_timer()
        super().on_headers_complete()

    def _unsupported_upgrade_warning(self) -> None:
        """No log line: the request is answered like any other, and strangers must not fill the log."""

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        if self._slot is _RESERVED:
            cycle.keep_alive = False
            if cycle.scope["path"] not in PROBE_PATHS and self.reject is not None:
                app = self.reject
        if draining.is_draining() and not self.pipeline:
            cycle.keep_alive = False
        cycle.scope["extensions"] = {EXTENSION: FastPath(cycle)}  # type: ignore[dict-item]
        super()._start_asgi_task(cycle, app)

    def shutdown(self) -> None:
        """The server stops. An idle connection closes unless a request is on its way; others close with an answer."""
        if not self._is_idle():
            super().shutdown()
        elif self.cycle is None:
            self.loop.call_later(FIRST_REQUEST_S, self._close_if_silent)
        else:
            self._close_if_silent()

    def _close_if_silent(self) -> None:
        if self.transport.is_closing() or not self._is_idle():
            return
        if self._in_head or _unread_bytes(self.transport):
            self.loop.call_later(FIRST_REQUEST_S, self._close_if_silent)
        else:
            self.transport.close()

    def _peer(self) -> str:
        return self.client[0] if self.client else ""

    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _on_timeout(self) -> None:
        self._timer = None
        if not self._is_idle():
            self._timer = self.loop.call_later(HEAD_TIMEOUT_S, self._on_timeout)  # an answer is under way
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


def _unread_bytes(transport: asyncio.Transport) -> int:
    """Bytes that have arrived and that the event loop has not read."""
    try:
        found = fcntl.ioctl(transport.get_extra_info("socket").fileno(), termios.FIONREAD, bytes(4))
    except OSError:
        return 0
    return int.from_bytes(found, sys.byteorder)
