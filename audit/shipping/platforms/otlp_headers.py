"""Pure: the headers that a person gives for an OTLP receiver."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

from audit.shipping.platforms.request_parts import fits_header
from gateway.lib.sentences import sentence

MOST_HEADERS: Final = 20
MOST_CHARACTERS: Final = 8192  # common servers take so much for all headers
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_LINE = re.compile(rf"\s*({_NAME.pattern})\s*:(.*)")
# They belong to the connection or to the body; a second one would let a server and a proxy read two requests from one.
_RESERVED: Final = frozenset(
    """accept-encoding connection content-encoding content-length content-type expect host keep-alive
    te trailer transfer-encoding upgrade""".split()
)
_RESERVED_PREFIX: Final = "proxy-"


class InvalidHeaders(ValueError):
    """The sentence says why and repeats no value."""


def parse_headers(text: str) -> dict[str, str]:
    """From lines of `Name: value`, or `name=value,name=value` with percent-encoded values. Raises: InvalidHeaders."""
    if len(text) > MOST_CHARACTERS:
        raise InvalidHeaders(
            sentence("Headers can have at most %(most_characters)s characters.", most_characters=MOST_CHARACTERS)
        )
    headers: dict[str, str] = {}
    for name, value in _pairs(text):
        _check(name, value)
        if name.lower() in {given.lower() for given in headers}:
            raise InvalidHeaders(sentence("The header %(name)s appears twice.", name=name))
        headers[name] = value
    if len(headers) > MOST_HEADERS:
        raise InvalidHeaders(sentence("At most %(most_headers)s headers are allowed.", most_headers=MOST_HEADERS))
    return headers


def _pairs(text: str) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for line in text.replace("\r\n", "\n").split("\n"):
        if named := _LINE.fullmatch(line):
            pairs.append((named[1], named[2].strip()))
            continue
        for member in filter(None, map(str.strip, line.split(","))):
            name, _, value = member.partition("=")
            pairs.append((name.strip(), unquote(value.strip())))
    return pairs


def _check(name: str, value: str) -> None:
    if not _NAME.fullmatch(name):
        raise InvalidHeaders(
            sentence("Write each header as Name: value on its own line, or as name=value, separated by commas.")
        )
    if name.lower() in _RESERVED or name.lower().startswith(_RESERVED_PREFIX):
        raise InvalidHeaders(sentence("The header %(name)s is set by the gateway.", name=name))
    if not fits_header(value):
        raise InvalidHeaders(sentence("The value of %(name)s must be one line of printable ASCII.", name=name))
