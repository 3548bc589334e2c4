"""Pure: JSON that every parser reads the same way; other input is refused. Spec: D18 · reliability.md 5 (12-14)"""

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from gateway.lib.sentences import plain

MAX_INTEGER_DIGITS = 64
# Objects and arrays of one document. Parsing so many holds the interpreter for some 30 ms; 4 MiB of them would hold it
# for a second. Brackets inside strings count too: only a parser can tell them apart.
MAX_CONTAINERS = 200_000

_decode = msgspec.json.Decoder().decode
_decode_entries = msgspec.json.Decoder(list[msgspec.Raw]).decode
_encode = msgspec.json.Encoder(enc_hook=plain).encode
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_INTEGER_BOUND = 10**MAX_INTEGER_DIGITS
_TOO_MANY_DIGITS = b"0" * (MAX_INTEGER_DIGITS + 1)
_EVERY_DIGIT_TO_ZERO = bytes.maketrans(b"123456789", b"000000000")


class StrictJSONError(ValueError):
    """`reason` says why the body is refused and never repeats it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def loads(body: bytes, *, max_depth: int = 64) -> object:
    """Parse `body`. Raises: StrictJSONError."""
    # Refused: empty body, byte order mark, invalid UTF-8, trailing bytes, NaN and Infinity, numbers out of range,
    # integers of more than 64 digits, lone surrogates, NUL in strings, duplicate keys, nesting deeper than `max_depth`,
    # and more than MAX_CONTAINERS objects and arrays.
    containers = body.count(b"{") + body.count(b"[")
    if containers > MAX_CONTAINERS:
        raise StrictJSONError(f"the body has more than {MAX_CONTAINERS} objects and arrays")
    document = _parse(body)
    if containers > max_depth:
        _check_depth(document, max_depth)
    if _TOO_MANY_DIGITS in body.translate(_EVERY_DIGIT_TO_ZERO):
        _check_integers(document)
    if b"\\u0000" in body and b"\\u0000" in body.replace(b"\\\\", b"--"):  # `\\u0000` is an escaped backslash and text
        raise StrictJSONError("a string contains NUL")
    _check_keys(body, document)
    return document


def nests_deeper(document: object, max_depth: int) -> bool:
    for depth, level in enumerate(_levels(document)):
        if depth == max_depth:
            return any(isinstance(value, dict | list) for value in level)
    return False


def entry_sizes(body: bytes) -> list[int]:
    """The bytes of each entry of an array that `loads` has accepted."""
    return [len(memoryview(entry)) for entry in _decode_entries(body)]


def _parse(body: bytes) -> object:
    try:
        return _decode(body)
    except msgspec.ValidationError:  # without a type msgspec refuses numbers only
        raise StrictJSONError("a number is out of range") from None
    except msgspec.DecodeError as error:
        raise StrictJSONError(_reason_for(body, error)) from None
    except UnicodeDecodeError:
        raise StrictJSONError("the body is not UTF-8") from None
    except RecursionError:
        raise StrictJSONError("the body is nested too deeply") from None


def _reason_for(body: bytes, error: msgspec.DecodeError) -> str:
    if not body.strip():
        return "the body is empty"
    if body.startswith(_BYTE_ORDER_MARK):
        return "the body starts with a byte order mark"
    return f"the body is not JSON: {str(error).removeprefix('JSON is malformed: ')}"


def _check_depth(document: object, max_depth: int) -> None:
    if nests_deeper(document, max_depth):
        raise StrictJSONError("the body is nested too deeply")


def _check_integers(document: object) -> None:
    for level in _levels(document):
        if any(isinstance(value, int) and not -_INTEGER_BOUND < value < _INTEGER_BOUND for value in level):
            raise StrictJSONError(f"an integer has more than {MAX_INTEGER_DIGITS} digits")


def _levels(document: Any) -> Iterator[list[Any]]:
    level = [document]  # no recursion: deep nesting would exhaust the stack
    while level:
        yield level
        containers = [
            value for value in level if type(value) is dict or type(value) is list
        ]  # twice isinstance's speed
        level = [inner for each in containers for inner in (each.values() if type(each) is dict else each)]


def _check_keys(body: bytes, document: object) -> None:
    # Parsing drops duplicate keys. Outside strings each key has one colon, so a document that lost a key encodes with
    # fewer colons than its body. An escaped colon comes back unescaped and could hide that: then Python's parser checks
    # every object.
    if _encode(document).count(b":") != body.count(b":") or b"\\u003a" in body or b"\\u003A" in body:
        json.loads(body, object_pairs_hook=_refuse_duplicates)


def _refuse_duplicates(pairs: list[tuple[str, object]]) -> None:
    if len({key for key, _ in pairs}) != len(pairs):
        raise StrictJSONError("a key is given twice")
