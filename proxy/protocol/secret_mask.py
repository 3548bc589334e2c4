"""Pure: masks stored credentials in a vendor's messages, which may echo the headers of a request.

Found: the value plain, in JSON (once or twice encoded), in URLs, and in Base64 at any offset, as common languages
encode them. Not found: other encodings, and values split into pieces.
"""

import base64
import json
import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote, quote_plus

import msgspec

MASK: Final = b"********"
MIN_CHARACTERS: Final = 8  # characters
# Shorter numbers are mostly ids and times: masking them would damage answers, and they are easy to guess.
MIN_NUMBER_CHARACTERS: Final = 16
MIN_DISTINCT_CHARACTERS: Final = 5  # different ones: ordinary answers contain "aaaaaaaa"
# Defaults and placeholders, which ordinary answers contain.
COMMON: Final = frozenset(
    {
        *("password", "passw0rd", "password1", "password123", "changeme", "change-me", "change_me", "changeit"),
        *("12345678", "123456789", "1234567890", "qwertyui", "qwertyuiop", "letmein1", "secret12", "secret123"),
        *("administrator", "username", "user@example.com", "admin@example.com", "localhost", "undefined", "disabled"),
        *("production", "development", "default-value", "your-api-key", "your_api_key", "api-key", "example.com"),
    }
)

_json = msgspec.json.Encoder().encode
# Optional JSON escapes of Go's encoder, and of .NET's, which writes hexadecimal digits in upper case.
_GO_ESCAPES: Final = str.maketrans({each: f"\\u{ord(each):04x}" for each in "<>&"})
_NET_ESCAPES: Final = str.maketrans({each: f"\\u{ord(each):04X}" for each in "<>&'+`"})
_ESCAPED: Final = re.compile(r"\\\\|\\u[0-9a-f]{4}")
# Characters that URL encoders keep: none, Python's, JavaScript's encodeURIComponent and encodeURI.
_SAFE_IN_ADDRESSES: Final = ("", "/", "!'()*", "!'()*;,/?:@&=+$#")


def is_secret(value: str) -> bool:
    """False for values too short or too common to be distinguished from ordinary text."""
    if len(value) < MIN_CHARACTERS or len(set(value)) < MIN_DISTINCT_CHARACTERS or value.lower() in COMMON:
        return False
    return not value.isdigit() or len(value) >= MIN_NUMBER_CHARACTERS


class SecretMask:
    """Contains the secrets: must not be printed."""

    __slots__ = ("_spellings",)

    def __init__(self, values: Iterable[str] = ()) -> None:
        found = {spelling for value in values if is_secret(value) for spelling in _spellings(value)}
        self._spellings = tuple(sorted(found, key=lambda each: (-len(each), each)))

    def __repr__(self) -> str:
        return "SecretMask()"

    def masked(self, message: bytes) -> bytes:
        """The same object if nothing was found. A masked number makes the message invalid JSON."""
        for spelling in self._spellings:
            if spelling in message:
                return self._replaced(message)
        return message

    def _replaced(self, message: bytes) -> bytes:
        for spelling in self._spellings:
            message = message.replace(spelling, MASK)
        return message


def _spellings(value: str) -> set[bytes]:
    quoted = {*(quote(value, safe=safe) for safe in _SAFE_IN_ADDRESSES), quote_plus(value), quote_plus(value, "*")}
    texts = {value} | quoted | {_lower_hex(each) for each in quoted} | _in_base64(value.encode())
    # JSON inside a JSON text is encoded twice.
    once = {written for each in texts for written in _in_json(each)}
    return {written.encode() for each in once for written in (each, *_in_json(each))}


def _in_json(value: str) -> set[str]:
    plain, ascii_only = _json(value)[1:-1].decode(), json.dumps(value)[1:-1]
    by_net = _upper_hex(ascii_only).replace('\\"', "\\u0022").translate(_NET_ESCAPES)
    with_escaped_slash = {each.replace("/", "\\/") for each in (plain, ascii_only)}
    return {plain, ascii_only, plain.translate(_GO_ESCAPES), by_net} | with_escaped_slash


def _upper_hex(encoded: str) -> str:
    return _ESCAPED.sub(lambda found: found[0][:2] + found[0][2:].upper(), encoded)


def _lower_hex(quoted: str) -> str:
    parts = quoted.split("%")
    return "%".join([parts[0], *(each[:2].lower() + each[2:] for each in parts[1:])])


def _in_base64(value: bytes) -> set[str]:
    """Base64 of the value at each of three offsets, without the characters that depend on its neighbours."""
    found: set[str] = set()
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + value).decode()
        certain = encoded[-(-before * 8 // 6) : (before + len(value)) * 8 // 6]
        found |= {certain, certain.replace("+", "-").replace("/", "_")}
    return found
