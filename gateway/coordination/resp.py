"""Pure: the wire format of Redis (RESP2): commands as bytes, and a reader of replies.

The general client's asynchronous path costs several times what the rest of an admission does: each reply line passes
a stream reader, and each command a pool and a retry policy.
"""

from __future__ import annotations

import re

import hiredis


class BadReply(ValueError):
    """What came is no RESP2."""


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


def reader() -> hiredis.Reader:
    """Reads replies from bytes: fed in any pieces, `gets` returns the next whole reply, or False if there is none yet.

    Simple and bulk strings are bytes, arrays lists, an error is an ErrorReply value, what is not there None.
    `gets` raises BadReply, after which the connection cannot be trusted any more.
    """
    return hiredis.Reader(protocolError=BadReply, replyError=_error)


def _error(text: str) -> ErrorReply:
    return ErrorReply(code_in(text))
