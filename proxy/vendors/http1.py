"""One HTTP/1.1 connection to a vendor: strict parsing, one request at a time, bounded in time and bytes.

    idle --send--> exchange --finish--> idle
                      | +--may_drain--> draining --end of stream--> idle
                      +-----error or timeout-----> closed (also: unrequested bytes while idle)
llhttp refuses ambiguous messages: Content-Length with Transfer-Encoding, either twice, bad chunk sizes, bare line
feeds, folded headers. In any doubt the connection is closed: the rest of one answer must not be read as the next.
"""

from __future__ import annotations

import asyncio
import select
import socket
from dataclasses import dataclass
from typing import Protocol, cast

import httptools

from proxy.vendors import errors
from proxy.vendors.content_coding import Gunzip
from proxy.vendors.errors import Evidence
from proxy.vendors.response import VendorResponse, WaitFor

MAX_HEAD_BYTES = 32 * 1024
# Bytes in a row without a body byte: bounds endless headers, trailers, chunk extensions and interim answers.
MAX_BODYLESS_BYTES = 64 * 1024
# In all, beside the body and a quarter of its size: bounds endless chunks of a few bytes each.
MAX_FRAMING_BYTES = 256 * 1024
DRAIN_S = 1.0  # for the end of an event stream after its last message


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds and bytes that bound one exchange, besides the caller's deadline."""

    connect_s: float
    chunk_s: float  # longest pause within a body that is no event stream
    body_bytes: int


class ConnectionOwner(Protocol):
    """Receives the end of a connection's use."""

    def on_lost(self, connection: Connection) -> None:
        """It is closed."""

    def on_drained(self, connection: Connection) -> None:
        """The unread rest of an answer has come."""


class Connection(asyncio.Protocol):
    """`owner` is called from the moment it is set."""

    __slots__ = (
        *("owner", "idle_since_s", "idle_at_most_s", "_loop", "_limits", "_transport", "_parser", "_response"),
        *("_deadline", "_quiet_until", "_timer", "_is_usable", "_keeps_alive", "_to_eof"),
        *("_head_bytes", "_bodyless_bytes", "_received_bytes", "_is_interim", "_is_draining"),
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, limits: Limits) -> None:
        self.owner: ConnectionOwner | None = None
        self.idle_since_s = 0.0
        self.idle_at_most_s = float("inf")  # as announced by the vendor
        self._loop = loop
        self._limits = limits
        self._transport: asyncio.Transport | None = None
        self._parser: httptools.HttpResponseParser
        self._response: VendorResponse | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._deadline = self._quiet_until = 0.0
        self._is_usable = False
        self._is_draining = False
        self._begin()

    def _begin(self) -> None:
        self._head_bytes = self._bodyless_bytes = self._received_bytes = 0
        self._is_interim = self._to_eof = self._keeps_alive = False

    @property
    def is_usable(self) -> bool:
        """Another request may be sent: open, and no exchange in flight."""
        return self._is_usable and self._response is None

    def has_unread(self) -> bool:
        """For idle connections: bytes or an end are in the socket, not yet read by the event loop."""
        below: socket.socket | None = self._transport.get_extra_info("socket") if self._transport else None
        if below is None:
            return True
        poller = select.poll()
        poller.register(below.fileno(), select.POLLIN)
        return bool(poller.poll(0))

    async def send(self, request: bytes, deadline: float) -> VendorResponse:
        """Returns at the head of the answer. Raises: VendorProblem, and then the connection is closed."""
        if not self.is_usable or self._transport is None:
            raise errors.unavailable()
        self._begin()
        response = self._response = VendorResponse(self._loop, max_bytes=self._limits.body_bytes, deadline=deadline)
        self._deadline = self._quiet_until = deadline
        self._timer = self._loop.call_at(deadline, self._on_timer)
        self._transport.write(request)
        await response.wait(WaitFor.HEAD)
        if response.fault is not None and not response.has_head:
            raise response.fault.copy()
        return response

    def move_deadline(self, deadline: float) -> None:
        """Of the exchange under way."""
        response = self._response
        if response is None or self._is_draining:
            return
        if self._quiet_until == self._deadline:
            self._quiet_until = deadline
        self._deadline = response.deadline = deadline
        self._arm()

    def finish(self, *, may_drain: bool) -> bool:
        """End the exchange; `may_drain` waits for the end of a stream. True if the connection is free again."""
        response = self._response
        if response is not None:
            response.resume_reading()
            response.release()
        # An event stream usually ends a moment after its last message.
        if may_drain and response is not None and self._has_more_to_come(response):
            self._is_draining = True
            self._deadline = self._quiet_until = min(self._deadline, self._loop.time() + DRAIN_S)
            self._arm()
            return False
        self._stop_timer()
        self._response = None
        if response is not None and not (response.is_whole and self._keeps_alive and self._is_all_sent()):
            self.abort()
        return self._is_usable

    def abort(self) -> None:
        self._is_usable = False
        self._stop_timer()
        if self._transport is not None:
            self._transport.abort()

    # --- asyncio.Protocol -------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._parser = httptools.HttpResponseParser(self)
        self._is_usable = True

    def data_received(self, data: bytes) -> None:
        response = self._response
        if response is None or response.is_complete or response.fault is not None:
            self.abort()  # unrequested: it must not be read as the next answer
            return
        self._bodyless_bytes += len(data)
        self._received_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):  # all that it raises; callbacks raise nothing
            self._keeps_alive = False
            if not response.is_complete:
                self._fail(errors.interrupted())
        is_flood = (
            self._bodyless_bytes > MAX_BODYLESS_BYTES
            or 4 * self._received_bytes - 5 * response.size > 4 * MAX_FRAMING_BYTES
        )
        if is_flood and not response.is_complete:
            self._fail(errors.bad_response("it is too large"))
        if response.has_head and not response.is_complete and not response.is_event_stream and not self._is_draining:
            # Only an event stream may pause, while a tool runs.
            first, self._quiet_until = self._quiet_until, self._loop.time() + self._limits.chunk_s
            if first == self._deadline:
                self._arm()
        if self._transport is not None and not self._is_draining:
            response.pause_reading(self._transport)
        response.notify()
        if self._is_draining and (response.is_complete or response.fault is not None):
            self._is_draining = False
            if self.owner is not None:
                self.owner.on_drained(self)

    def eof_received(self) -> None:
        """The transport closes itself."""
        self._is_usable = False

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_usable = False
        response = self._response
        if response is not None and not response.is_complete:
            if response.has_head and self._to_eof and exc is None:
                self.on_message_complete()
            else:
                self._fail(
                    errors.interrupted() if response.has_head else errors.unavailable(evidence=Evidence.NO_RESPONSE)
                )
            response.notify()
        self._stop_timer()
        self._transport = None
        del self._parser  # it refers to this connection: a reference cycle
        if self.owner is not None:
            self.owner.on_lost(self)

    # --- httptools --------------------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """A message after the answer makes the connection unusable; the answer stands."""
        response = self._response
        if response is not None and response.is_complete:
            self._keeps_alive = False

    def on_header(self, name: bytes, value: bytes) -> None:
        response = self._response
        if response is None or response.has_head:  # after the head, it is a trailer
            return
        self._head_bytes += len(name) + len(value) + 4
        if self._head_bytes > MAX_HEAD_BYTES:
            self._fail(errors.bad_response("its headers are too large"))
        else:
            known = response.headers.setdefault(name.lower(), value)
            if known is not value and name.lower() == b"content-encoding":
                self._fail(errors.bad_response("its headers contradict each other"))

    def on_headers_complete(self) -> None:
        response = self._response
        if response is None or response.is_complete:
            return
        status: int = self._parser.get_status_code()
        if 100 <= status < 200:
            self._is_interim = True
            response.headers.clear()
            if status == 101:
                self._fail(errors.bad_response("it switches protocols"))
            return
        response.status = status
        fault = self._check_head(response, status)
        if fault is not None:
            self._fail(errors.bad_response(fault))
        response.has_head = response.fault is None

    def _check_head(self, response: VendorResponse, status: int) -> str | None:
        headers, version = response.headers, self._parser.get_http_version()
        transfer, length = headers.get(b"transfer-encoding"), headers.get(b"content-length")
        if version not in ("1.1", "1.0") or not 200 <= status < 600:
            return "it is not HTTP/1.1"
        if transfer is not None and (transfer.lower() != b"chunked" or version == "1.0"):
            return "it uses another transfer coding"
        if length is not None and int(length) > self._limits.body_bytes:
            return "it is too large"
        self._to_eof = transfer is None and length is None and status not in (204, 304)
        self._keeps_alive = not self._to_eof and bool(self._parser.should_keep_alive())
        kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        response.is_event_stream = kind == b"text/event-stream"
        coding = headers.get(b"content-encoding", b"identity").strip().lower()
        if coding in (b"gzip", b"x-gzip"):
            response.gunzip = Gunzip()
        elif coding not in (b"identity", b""):
            return "it uses another content coding"
        if b"keep-alive" in headers:
            self.idle_at_most_s = _keep_alive_s(headers[b"keep-alive"])
        return None

    def on_body(self, data: bytes) -> None:
        """A piece as received. The reader decompresses it and counts the result against the cap again."""
        response = self._response
        if response is None or response.is_complete or response.fault is not None:
            return
        self._bodyless_bytes = 0
        if len(data) > self._limits.body_bytes - response.size:
            self._fail(errors.bad_response("it is too large"))
        elif data and not self._is_draining:
            response.pieces.append(data)
        response.size += len(data)

    def on_message_complete(self) -> None:
        response = self._response
        if response is None or response.fault is not None:
            return
        if self._is_interim:
            self._is_interim = False
            return
        response.is_complete = True

    # --- time -------------------------------------------------------------------------------------------------------

    def _on_timer(self) -> None:
        """The one timer of an exchange. It may have moved since it was set."""
        self._timer = None
        response = self._response
        if response is None or response.is_complete:
            return
        if self._loop.time() < min(self._deadline, self._quiet_until):
            self._arm()
            return
        self._fail(errors.timeout(Evidence.RESPONDED if response.has_head else Evidence.NO_RESPONSE))
        response.notify()

    def _arm(self) -> None:
        self._stop_timer()
        self._timer = self._loop.call_at(min(self._deadline, self._quiet_until), self._on_timer)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _fail(self, fault: errors.VendorProblem) -> None:
        response = self._response
        if response is not None and response.fault is None:
            response.fault = fault
        self.abort()

    def _has_more_to_come(self, response: VendorResponse) -> bool:
        return response.is_event_stream and self._is_usable and not response.is_complete and response.fault is None

    def _is_all_sent(self) -> bool:
        return self._transport is not None and self._transport.get_write_buffer_size() == 0


def _keep_alive_s(keep_alive: bytes) -> float:
    """The vendor's `Keep-Alive: timeout=5`, less a second for transit."""
    for part in keep_alive.lower().split(b","):
        name, _, value = part.strip().partition(b"=")
        if name == b"timeout" and value.isdigit() and len(value) < 7:
            return int(value) - 1.0
    return float("inf")
