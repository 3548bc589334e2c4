"""Pure: parser and writer of Server-Sent Events."""

import re
import sys
from typing import Final

import msgspec

MAX_EVENT_BYTES: Final = 10 * 1024 * 1024
COMMENT_PING: Final = b": ping\n\n"  # keeps an idle connection open

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_LINE_ENDS: Final = (b"\n", b"\r")
_MAX_RETRY_DIGITS: Final = 9
_line_end = re.compile(rb"\r\n|\n|\r")
_empty_lines = re.compile(rb"\n{3,}")


class SSETooLarge(ValueError):
    """An event or the stream exceeds its maximum; the rest of the stream is unreadable."""


class SSEEvent(msgspec.Struct, frozen=True):
    """`data` is b"" in events that only carry an id."""

    data: bytes
    event: str = "message"
    id: str | None = None
    retry_ms: int | None = None


class SSEParser:
    """Linear time, however the stream is cut into chunks. Spec: protocol.md A.6"""

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES, max_stream_bytes: int = sys.maxsize) -> None:
        self.last_event_id: str | None = None  # for resuming, as `retry_ms`
        self.retry_ms: int | None = None
        self.fed_bytes = 0  # over all connections of the stream
        self.comments = 0  # lines that only show that the server is alive
        self._max_event_bytes = max_event_bytes
        self._max_stream_bytes = max_stream_bytes
        self._at_start = True
        self._after_cr = False
        self._line_parts: list[bytes] = []  # of the incomplete line; joined once it ends
        self._line_bytes = 0
        self._data: list[bytes] = []  # of the incomplete event, as the four below
        self._data_bytes = 0
        self._event = ""
        self._id: str | None = None
        self._retry_ms: int | None = None

    @property
    def kept_bytes(self) -> int:
        return self._data_bytes + self._line_bytes  # of the incomplete event

    def feed(self, chunk: bytes) -> list[SSEEvent]:
        """The events that end in `chunk`. Raises: SSETooLarge past `max_event_bytes` or `max_stream_bytes`."""
        self.fed_bytes += len(chunk)
        if self.fed_bytes > self._max_stream_bytes:
            raise SSETooLarge(f"the stream is larger than {self._max_stream_bytes} bytes")
        if self._after_cr and chunk:
            chunk = chunk.removeprefix(b"\n")  # the second half of CRLF
            self._after_cr = False
        if not chunk:
            return []
        self._after_cr = chunk.endswith(b"\r")
        if b"\n\n\n" in chunk:  # further empty lines mean nothing; a flood of them would cost time
            chunk = _empty_lines.sub(b"\n\n", chunk)
        lines = chunk.splitlines()
        incomplete = b"" if chunk.endswith(_LINE_ENDS) else lines.pop()
        events = []
        for line in lines:
            event = self._feed_line(self._join_line(line) if self._line_parts else line)
            if event is not None:
                events.append(event)
        if incomplete:
            self._line_parts.append(incomplete)
            self._line_bytes += len(incomplete)
            self._check_size(self._data_bytes + self._line_bytes - len(b"data: "))
        return events

    def close(self) -> bool:
        """The connection ended; further chunks come from another one. True if an incomplete event was dropped."""
        cut_off = bool(self._line_parts or self._data or self._event or self._id is not None)
        self._line_parts = []
        self._line_bytes = 0
        self._at_start = True
        self._after_cr = False
        self._clear_event()
        return cut_off

    def _join_line(self, last_part: bytes) -> bytes:
        line = b"".join((*self._line_parts, last_part))
        self._line_parts = []
        self._line_bytes = 0
        return line

    def _feed_line(self, line: bytes) -> SSEEvent | None:
        """`line` is without its end. Returns the event that an empty line ends."""
        if self._at_start:
            self._at_start = False
            line = line.removeprefix(_BYTE_ORDER_MARK)
        if not line:
            return self._end_event()
        field, _, value = line.partition(b":")
        if value.startswith(b" "):
            value = value[1:]
        if field == b"data":
            self._data_bytes += len(value) + bool(self._data)  # the newline between two lines
            self._data.append(value)
            self._check_size(self._data_bytes)
        elif field == b"":
            self.comments += 1
        elif field == b"event":
            self._event = value.decode("utf-8", "replace")
        elif field == b"id" and b"\0" not in value:
            self._id = value.decode("utf-8", "replace")
        elif field == b"retry" and value.isdigit() and len(value) <= _MAX_RETRY_DIGITS:
            self._retry_ms = self.retry_ms = int(value)
        return None

    def _end_event(self) -> SSEEvent | None:
        if self._id is not None:
            self.last_event_id = self._id
        event = None
        if self._data:
            event = SSEEvent(b"\n".join(self._data), self._event or "message", self._id, self._retry_ms)
        self._clear_event()
        return event

    def _clear_event(self) -> None:
        self._data = []
        self._data_bytes = 0
        self._event = ""
        self._id = self._retry_ms = None

    def _check_size(self, held_bytes: int) -> None:
        if held_bytes > self._max_event_bytes:
            raise SSETooLarge(f"an event is larger than {self._max_event_bytes} bytes")


def encode_event(data: bytes) -> bytes:
    """Line ends in `data` cannot start another field."""
    if b"\n" in data or b"\r" in data:
        data = b"\ndata: ".join(_line_end.split(data))
    return b"event: message\ndata: %b\n\n" % data
