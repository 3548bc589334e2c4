"""Pure: the wire format of Redis (RESP2): commands as bytes, and replies read from bytes.

The general client's asynchronous path costs several times what the rest of an admission does: each reply line passes
a stream reader, and each command a pool and a retry policy.
"""

from __future__ import annotations

import re
from typing import Final

_SIMPLE, _ERROR, _INTEGER, _BULK, _ARRAY = b"+-:$*"
INCOMPLETE: Final = (None, -1)


class BadReply(ValueError):
    """What came is no RESP2: the connection cannot be trusted any more."""


class ErrorReply(Exception):
    """Redis refused one command; `code` is such as NOSCRIPT. The text stays out: it may quote keys."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


# Redis before 7 wraps what a script's command met: "ERR Error running script ...: -READONLY You can't write ...".
_INSIDE_SCRIPT = re.compile(r" -([A-Z]+) ")


def code_in(text: str) -> str:
    """The code of an error reply: its first word, or the one that a script's command met."""
    code = text.partition(" ")[0]
    inside = _INSIDE_SCRIPT.search(text) if code == "ERR" else None
    return inside.group(1) if inside else code


def command(*parts: str | int) -> bytes:
    """One command."""
    encoded = [str(part).encode() for part in parts]
    return b"*%d\r\n%b" % (len(encoded), b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in encoded))


def read(data: bytes, start: int) -> tuple[object, int]:
    """The reply that begins at `start`, and where the next one does; INCOMPLETE while bytes of it are missing.

    Simple and bulk strings are bytes, arrays lists, an error is an ErrorReply value, what is not there None.

    Raises: BadReply.
    """
    end = data.find(b"\r\n", start)
    if end < 0:
        return INCOMPLETE
    kind, after = data[start], end + 2
    try:
        if kind == _BULK:
            return _bulk(data, int(data[start + 1 : end]), after)
        if kind == _INTEGER:
            return int(data[start + 1 : end]), after
        if kind == _ARRAY:
            return _array(data, int(data[start + 1 : end]), after)
    except ValueError as fault:
        raise BadReply("a length is no number") from fault
    if kind == _SIMPLE:
        return data[start + 1 : end], after
    if kind == _ERROR:
        return ErrorReply(code_in(data[start + 1 : end].decode("latin-1"))), after
    raise BadReply("an unknown kind of reply")


def _bulk(data: bytes, size: int, start: int) -> tuple[object, int]:
    if size < 0:
        return None, start
    end = start + size
    return (data[start:end], end + 2) if len(data) >= end + 2 else INCOMPLETE


def _array(data: bytes, size: int, after: int) -> tuple[object, int]:
    items: list[object] = []
    for _ in range(size):
        item, after = read(data, after)
        if after < 0:
            return INCOMPLETE
        items.append(item)
    return (None if size < 0 else items), after
