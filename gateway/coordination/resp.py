"""Pure: the Redis protocol (RESP2): commands as bytes, and a parser of replies."""

from __future__ import annotations

import re

import hiredis


# redis-py's asynchronous client costs several times the rest of an admission: each reply line passes a stream reader,
# and each command a pool and a retry policy.
class BadReply(ValueError):
    """Raised for bytes that are not RESP2."""


class ErrorReply(Exception):
    """An error reply. `code` is its first word, such as NOSCRIPT."""

    def __init__(self, code: str) -> None:
        super().__init__(code)  # without the reply's text, which may quote keys
        self.code = code


# Redis before 7 wraps the error of a command inside a script:
# "ERR Error running script ...: -READONLY You can't write ...".
_INSIDE_SCRIPT = re.compile(r" -([A-Z]+) ")


def code_in(text: str) -> str:
    """The code of an error reply: its first word, or the code of the command that failed inside a script."""
    code = text.partition(" ")[0]
    inside = _INSIDE_SCRIPT.search(text) if code == "ERR" else None
    return inside.group(1) if inside else code


def command(*parts: str | bytes | int) -> bytes:
    encoded: bytes = hiredis.pack_command(parts)  # type: ignore[arg-type]  # typed as a tuple of one
    return encoded


def reader() -> hiredis.Reader:
    """A parser: `feed` takes bytes in any pieces, `gets` returns the next whole reply, or False. Raises: BadReply.

    Strings are bytes, arrays lists, null is None, and an error is an ErrorReply value.
    """
    return hiredis.Reader(protocolError=BadReply, replyError=_error)


def _error(text: str) -> ErrorReply:
    return ErrorReply(code_in(text))
