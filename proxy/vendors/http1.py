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
from proxy.vendors.errors import Sign
from proxy.vendors.response import Until, VendorResponse

MAX_HEAD_BYTES = 32 * 1024
# Bytes in a row without a body byte: bounds endless headers, trailers, chunk extensions and interim answers.
MAX_IDLE_TALK_BYTES = 64 * 1024
# In all, beside the body and a quarter of its size: bounds endless chunks of a few bytes each.
MAX_FRAMING_BYTES = 256 * 1024
DRAIN_S = 1.0  # for the end of an event stream after its last message


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds and bytes that bound one exchange, besides the caller's deadline."""

    connect_s: float = 5.0
    chunk_s: float = 10.0  # longest pause within a body that is no event stream
    body_bytes: int = 10 * 1024 * 1024


class Owner(Protocol):
    """Receives the end of a connection's use."""

    def lost(self, connection: Connection) -> None:
        """It is closed."""

    def drained(self, connection: Connection) -> None:
        """The unread rest of an answer has come."""


class Connection(asyncio.Protocol):
    """`owner` is called from the moment it is set."""

    __slots__ = (
        *("owner", "idle_since_s", "idle_at_most_s", "_loop", "_limits", "_transport", "_parser", "_answer"),
        *("_deadline", "_quiet_until", "_timer", "_is_usable", "_keeps_alive", "_to_eof"),
        *("_head_bytes", "_idle_talk_bytes", "_received_bytes", "_is_interim", "_is_draining"),
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, limits: Limits) -> None:
        self.owner: Owner | None = None
        self.idle_since_s = 0.0
        self.idle_at_most_s = float("inf")  # as announced by the vendor
        self._loop = loop
        self._limits = limits
        self._transport: asyncio.Transport | None = None
        self._parser: httptools.HttpResponseParser
        self._answer: VendorResponse | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._deadline = self._quiet_until = 0.0
        self._is_usable = False
        self._is_draining = False
        self._begin()

    def _begin(self) -> None:
        self._head_bytes = self._idle_talk_bytes = self._received_bytes = 0
        self._is_interim = self._to_eof = self._keeps_alive = False

    @property
    def is_usable(self) -> bool:
        """Another request may be sent: open, and no exchange in flight."""
        return self._is_usable and self._answer is None

    def has_unread(self) -> bool:
        """For idle connections: bytes or an end are in the socket, not yet read by the event loop."""
        below: socket.socket | None = self._transport.get_extra_info("socket") if self._transport else None
        if below is None:
            return True
        look = select.poll()
        look.register(below.fileno(), select.POLLIN)
        return bool(look.poll(0))

    async def send(self, request: bytes, deadline: float) -> VendorResponse:
        """Returns at the head of the answer. Raises: VendorProblem, and then the connection is closed."""
        if not self.is_usable or self._transport is None:
            raise errors.unavailable()
        self._begin()
        answer = self._answer = VendorResponse(self._loop, max_bytes=self._limits.body_bytes, deadline=deadline)
        self._deadline = self._quiet_until = deadline
        self._timer = self._loop.call_at(deadline, self._look)
        self._transport.write(request)
        await answer.wait(Until.HEAD)
        if answer.fault is not None and not answer.has_head:
            raise answer.fault.again()
        return answer

    def finish(self, *, may_drain: bool) -> bool:
        """End the exchange; `may_drain` waits for the end of a stream. True if the connection is free again."""
        answer = self._answer
        if answer is not None:
            answer.go_on()
            answer.release()
        # An event stream usually ends a moment after its last message.
        if may_drain and answer is not None and self._has_more_to_come(answer):
            self._is_draining = True
            self._deadline = self._quiet_until = min(self._deadline, self._loop.time() + DRAIN_S)
            self._arm()
            return False
        self._stop_timer()
        self._answer = None
        if answer is not None and not (answer.is_whole and self._keeps_alive and self._is_all_sent()):
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
        answer = self._answer
        if answer is None or answer.is_complete or answer.fault is not None:
            self.abort()  # unrequested: it must not be read as the next answer
            return
        self._idle_talk_bytes += len(data)
        self._received_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):  # all that it raises; callbacks raise nothing
            self._keeps_alive = False
            if not answer.is_complete:
                self._fail(errors.broken_off())
        is_talk = (
            self._idle_talk_bytes > MAX_IDLE_TALK_BYTES
            or 4 * self._received_bytes - 5 * answer.size > 4 * MAX_FRAMING_BYTES
        )
        if is_talk and not answer.is_complete:
            self._fail(errors.bad_response("it is too large"))
        if answer.has_head and not answer.is_complete and not answer.is_event_stream and not self._is_draining:
            # Only an event stream may pause, while a tool runs.
            first, self._quiet_until = self._quiet_until, self._loop.time() + self._limits.chunk_s
            if first == self._deadline:
                self._arm()
        if self._transport is not None and not self._is_draining:
            answer.hold_back(self._transport)
        answer.wake()
        if self._is_draining and (answer.is_complete or answer.fault is not None):
            self._is_draining = False
            if self.owner is not None:
                self.owner.drained(self)

    def eof_received(self) -> None:
        """The transport closes itself."""
        self._is_usable = False

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_usable = False
        answer = self._answer
        if answer is not None and not answer.is_complete:
            if answer.has_head and self._to_eof and exc is None:
                self.on_message_complete()
            else:
                self._fail(errors.broken_off() if answer.has_head else errors.unavailable(sign=Sign.UNANSWERED))
            answer.wake()
        self._stop_timer()
        self._transport = None
        del self._parser  # it refers to this connection: a reference cycle
        if self.owner is not None:
            self.owner.lost(self)

    # --- httptools --------------------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """A message after the answer makes the connection unusable; the answer stands."""
        answer = self._answer
        if answer is not None and answer.is_complete:
            self._keeps_alive = False

    def on_header(self, name: bytes, value: bytes) -> None:
        answer = self._answer
        if answer is None or answer.has_head:  # after the head, it is a trailer
            return
        self._head_bytes += len(name) + len(value) + 4
        if self._head_bytes > MAX_HEAD_BYTES:
            self._fail(errors.bad_response("its headers are too large"))
        else:
            known = answer.headers.setdefault(name.lower(), value)
            if known is not value and name.lower() == b"content-encoding":
                self._fail(errors.bad_response("its headers contradict each other"))

    def on_headers_complete(self) -> None:
        answer = self._answer
        if answer is None or answer.is_complete:
            return
        status: int = self._parser.get_status_code()
        if 100 <= status < 200:
            self._is_interim = True
            answer.headers.clear()
            if status == 101:
                self._fail(errors.bad_response("it changes the protocol"))
            return
        answer.status = status
        fault = self._judge_head(answer, status)
        if fault is not None:
            self._fail(errors.bad_response(fault))
        answer.has_head = answer.fault is None

    def _judge_head(self, answer: VendorResponse, status: int) -> str | None:
        headers, version = answer.headers, self._parser.get_http_version()
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
        answer.is_event_stream = kind == b"text/event-stream"
        coding = headers.get(b"content-encoding", b"identity").strip().lower()
        if coding in (b"gzip", b"x-gzip"):
            answer.gunzip = Gunzip()
        elif coding not in (b"identity", b""):
            return "it uses another content coding"
        if b"keep-alive" in headers:
            self.idle_at_most_s = _promised_s(headers[b"keep-alive"])
        return None

    def on_body(self, data: bytes) -> None:
        """A piece as received. The reader decompresses it and counts the result against the cap again."""
        answer = self._answer
        if answer is None or answer.is_complete or answer.fault is not None:
            return
        self._idle_talk_bytes = 0
        if len(data) > self._limits.body_bytes - answer.size:
            self._fail(errors.bad_response("it is too large"))
        elif data and not self._is_draining:
            answer.pieces.append(data)
        answer.size += len(data)

    def on_message_complete(self) -> None:
        answer = self._answer
        if answer is None or answer.fault is not None:
            return
        if self._is_interim:
            self._is_interim = False
            return
        answer.is_complete = True

    # --- time -------------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """The one timer of an exchange. It may have moved since it was set."""
        self._timer = None
        answer = self._answer
        if answer is None or answer.is_complete:
            return
        if self._loop.time() < min(self._deadline, self._quiet_until):
            self._arm()
            return
        self._fail(errors.timeout(Sign.ANSWERED if answer.has_head else Sign.UNANSWERED))
        answer.wake()

    def _arm(self) -> None:
        self._stop_timer()
        self._timer = self._loop.call_at(min(self._deadline, self._quiet_until), self._look)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _fail(self, fault: errors.VendorProblem) -> None:
        answer = self._answer
        if answer is not None and answer.fault is None:
            answer.fault = fault
        self.abort()

    def _has_more_to_come(self, answer: VendorResponse) -> bool:
        return answer.is_event_stream and self._is_usable and not answer.is_complete and answer.fault is None

    def _is_all_sent(self) -> bool:
        return self._transport is not None and self._transport.get_write_buffer_size() == 0


def _promised_s(keep_alive: bytes) -> float:
    """The vendor's `Keep-Alive: timeout=5`, less a second for transit."""
    for part in keep_alive.lower().split(b","):
        name, _, value = part.strip().partition(b"=")
        if name == b"timeout" and value.isdigit() and len(value) < 7:
            return int(value) - 1.0
    return float("inf")
