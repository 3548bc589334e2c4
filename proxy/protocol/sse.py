"""Pure: Server-Sent Events, read from chunks cut anywhere, and written."""

import re
import sys
from typing import Final

import msgspec

MAX_EVENT_BYTES: Final = 10 * 1024 * 1024
COMMENT_PING: Final = b": ping\n\n"

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_LINE_ENDS: Final = (b"\n", b"\r")
_MAX_RETRY_DIGITS: Final = 9
_line_end = re.compile(rb"\r\n|\n|\r")
_empty_lines = re.compile(rb"\n{3,}")


class SSETooLarge(ValueError):
    """An event, or the stream, is larger than the parser may read. The rest of the stream cannot be read."""


class SSEEvent(msgspec.Struct, frozen=True):
    """One event, with the `id` and `retry_ms` it carried itself.

    `data` is b"" in the events that servers send only to hand out an id.
    """

    data: bytes
    event: str = "message"
    id: str | None = None
    retry_ms: int | None = None


class SSEParser:
    """Reads one stream, in time proportional to its length however it is cut.

    `last_event_id` and `retry_ms` are the stream's newest, for who has to resume it; `fed_bytes` counts all of it, over
    all the connections that it took; `comments` counts the lines that say nothing but that the server lives.
    Spec: protocol.md A.6
    """

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES, max_stream_bytes: int = sys.maxsize) -> None:
        self.last_event_id: str | None = None
        self.retry_ms: int | None = None
        self.fed_bytes = 0
        self.comments = 0
        self._max_event_bytes = max_event_bytes
        self._max_stream_bytes = max_stream_bytes
        self._at_start = True
        self._after_cr = False
        self._line_parts: list[bytes] = []  # of the line that no chunk has ended yet; joined once, when one does
        self._line_bytes = 0
        self._data: list[bytes] = []  # of the event that no empty line has ended yet, as the four below
        self._data_bytes = 0
        self._event = ""
        self._id: str | None = None
        self._retry_ms: int | None = None

    @property
    def kept_bytes(self) -> int:
        """Of the event that has not ended yet."""
        return self._data_bytes + self._line_bytes

    def feed(self, chunk: bytes) -> list[SSEEvent]:
        """Return the events that end in `chunk`.

        Raises: SSETooLarge: the data of an event, finished or not, exceeds `max_event_bytes`, or all that was fed
        `max_stream_bytes`.
        """
        self.fed_bytes += len(chunk)
        if self.fed_bytes > self._max_stream_bytes:
            raise SSETooLarge(f"the stream is larger than {self._max_stream_bytes} bytes")
        if self._after_cr and chunk:
            chunk = chunk.removeprefix(b"\n")  # the other half of the line end before it
            self._after_cr = False
        if not chunk:
            return []
        self._after_cr = chunk.endswith(b"\r")
        if b"\n\n\n" in chunk:  # the first empty line ends an event, and a flood of more is made to keep us busy
            chunk = _empty_lines.sub(b"\n\n", chunk)
        lines = chunk.splitlines()
        unended = b"" if chunk.endswith(_LINE_ENDS) else lines.pop()
        events = []
        for line in lines:
            event = self._take_line(self._whole(line) if self._line_parts else line)
            if event is not None:
                events.append(event)
        if unended:
            self._line_parts.append(unended)
            self._line_bytes += len(unended)
            self._check_size(self._data_bytes + self._line_bytes - len(b"data: "))
        return events

    def close(self) -> bool:
        """The connection has ended; what is fed from now on came over another one.

        An event that has not ended is forgotten, as the standard asks; True if there was one.
        """
        cut_off = bool(self._line_parts or self._data or self._event or self._id is not None)
        self._line_parts = []
        self._line_bytes = 0
        self._at_start = True
        self._after_cr = False
        self._clear_event()
        return cut_off

    def _whole(self, last_part: bytes) -> bytes:
        line = b"".join((*self._line_parts, last_part))
        self._line_parts = []
        self._line_bytes = 0
        return line

    def _take_line(self, line: bytes) -> SSEEvent | None:
        """Take in one line without its end; return the event if this was the empty line behind it."""
        if self._at_start:
            self._at_start = False
            line = line.removeprefix(_BYTE_ORDER_MARK)
        if not line:
            return self._end_event()
        field, _, value = line.partition(b":")
        if value.startswith(b" "):
            value = value[1:]
        if field == b"data":
            self._data_bytes += len(value) + bool(self._data)  # one for the line end that joins two
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
    """Return `data` as one event, whatever line ends it holds: nothing in it can begin a field of its own."""
    if b"\n" in data or b"\r" in data:
        data = b"\ndata: ".join(_line_end.split(data))
    return b"event: message\ndata: %b\n\n" % data
