"""Pure: stored credentials in a vendor's messages, found and masked.

A tool that echoes its request's headers, or an error text with them, would show an organization's key to members who
may only use it. Looked for are the plain value and what it becomes in JSON (once and twice encoded), in an address, and
in Base64 at any place of a longer text, as the encoders of common languages write them. Other spellings, and a value
that comes in pieces, are not found.
"""

import base64
import json
import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote, quote_plus

import msgspec

MASK: Final = b"********"
SHORTEST: Final = 8
# Shorter numbers are ids and times: to mask them would spoil answers, and they could be guessed anyway.
SHORTEST_NUMBER: Final = 16
FEWEST_CHARACTERS: Final = 5  # different ones: "aaaaaaaa" stands in ordinary answers
COMMON: Final = frozenset(
    {
        *("password", "passw0rd", "password1", "password123", "changeme", "change-me", "change_me", "changeit"),
        *("12345678", "123456789", "1234567890", "qwertyui", "qwertyuiop", "letmein1", "secret12", "secret123"),
        *("administrator", "username", "user@example.com", "admin@example.com", "localhost", "undefined", "disabled"),
        *("production", "development", "default-value", "your-api-key", "your_api_key", "api-key", "example.com"),
    }
)

_json = msgspec.json.Encoder().encode
# What encoders escape in JSON though they need not: Go's, and .NET's, which writes hexadecimal digits in upper case.
_GO_ESCAPES: Final = str.maketrans({each: f"\\u{ord(each):04x}" for each in "<>&"})
_NET_ESCAPES: Final = str.maketrans({each: f"\\u{ord(each):04X}" for each in "<>&'+`"})
_ESCAPED: Final = re.compile(r"\\\\|\\u[0-9a-f]{4}")
# What encoders leave as it is in a part of an address: nothing, Python's, JavaScript's for a part and for the whole.
_SAFE_IN_ADDRESSES: Final = ("", "/", "!'()*", "!'()*;,/?:@&=+$#")


def is_secret(value: str) -> bool:
    """Return False for a value that is too short or too common to be told apart from an answer's own words."""
    if len(value) < SHORTEST or len(set(value)) < FEWEST_CHARACTERS or value.lower() in COMMON:
        return False
    return not value.isdigit() or len(value) >= SHORTEST_NUMBER


class SecretMask:
    """Finds some values in JSON messages. Holds them: never printed."""

    __slots__ = ("_spellings",)

    def __init__(self, values: Iterable[str] = ()) -> None:
        found = {spelling for value in values if is_secret(value) for spelling in _spellings(value)}
        self._spellings = tuple(sorted(found, key=lambda each: (-len(each), each)))

    def __repr__(self) -> str:
        return "SecretMask()"

    def masked(self, message: bytes) -> bytes:
        """Return the message itself if no value is in it; else one with MASK in place of each.

        A value outside a string, such as a number, leaves something that is no JSON any more.
        """
        for spelling in self._spellings:
            if spelling in message:
                return self._replaced(message)
        return message

    def _replaced(self, message: bytes) -> bytes:
        for spelling in self._spellings:
            message = message.replace(spelling, MASK)
        return message


def _spellings(value: str) -> set[bytes]:
    """The value as it may stand in the text of a JSON message."""
    quoted = {*(quote(value, safe=safe) for safe in _SAFE_IN_ADDRESSES), quote_plus(value), quote_plus(value, "*")}
    texts = {value} | quoted | {_lower_hex(each) for each in quoted} | _in_base64(value.encode())
    once = {written for each in texts for written in _in_json(each)}
    return {written.encode() for each in once for written in (each, *_in_json(each))}


def _in_json(value: str) -> set[str]:
    plain, ascii_only = _json(value)[1:-1].decode(), json.dumps(value)[1:-1]
    by_net = _upper_hex(ascii_only).replace('\\"', "\\u0022").translate(_NET_ESCAPES)
    by_others = {each.replace("/", "\\/") for each in (plain, ascii_only)}
    return {plain, ascii_only, plain.translate(_GO_ESCAPES), by_net} | by_others


def _upper_hex(encoded: str) -> str:
    return _ESCAPED.sub(lambda found: found[0][:2] + found[0][2:].upper(), encoded)


def _lower_hex(quoted: str) -> str:
    parts = quoted.split("%")
    return "%".join([parts[0], *(each[:2].lower() + each[2:] for each in parts[1:])])


def _in_base64(value: bytes) -> set[str]:
    """The characters that stand for this value and nothing else, wherever in an encoded text it begins."""
    found: set[str] = set()
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + value).decode()
        certain = encoded[-(-before * 8 // 6) : (before + len(value)) * 8 // 6]
        found |= {certain, certain.replace("+", "-").replace("/", "_")}
    return found
