"""The values masked in vendors' messages, their spellings, and the rest of the message."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest

from proxy.protocol.secret_mask import MASK, SecretMask, is_secret

SECRET = 's3cr/et+Käse "7"\\'
KEY = "sk_live_51HabcdefGHI"


@pytest.mark.parametrize(
    ("value", "counts"),
    [
        (KEY, True),
        (SECRET, True),
        ("abcd1234", True),
        ("1234567890123457", True),
        ("", False),
        ("abc1234", False),
        ("aaaaaaaaaaaa", False),
        ("abababababab", False),
        ("20261122", False),
        ("1795320000000", False),
        ("changeme", False),
        ("PASSWORD123", False),
        ("localhost", False),
    ],
)
def test_which_values_count(value: str, counts: bool) -> None:
    assert is_secret(value) is counts
    message = json.dumps({"text": value}).encode()
    assert (SecretMask([value]).masked(message) is message) is not counts


def each_lower(character: str) -> str:
    return quote(character, safe="").lower()


def spellings(value: str) -> dict[str, str]:
    """The spellings of a value by tools and servers before it stands in a JSON text."""
    encoded = value.encode()
    return {
        "plain": value,
        "twice": json.dumps({"headers": {"x-api-key": value}}),
        "twice, unescaped": json.dumps({"headers": {"x-api-key": value}}, ensure_ascii=False),
        "basic": "Basic " + base64.b64encode(b"user:" + encoded).decode(),
        "basic of a longer user": "Basic " + base64.b64encode(b"users:" + encoded).decode(),
        "basic with more behind": "Basic " + base64.b64encode(b"u:" + encoded + b":more").decode(),
        "base64 for addresses": base64.urlsafe_b64encode(encoded).decode(),
        "in an address": f"https://v.example/?key={quote(value, safe='')}&a=1",
        "in a form": f"key={quote_plus(value)}&a=1",
        "lower case": "".join(each if each.isalnum() and each.isascii() else each_lower(each) for each in value),
    }


@pytest.mark.parametrize("value", [SECRET, KEY, "abcd1234"])
@pytest.mark.parametrize("spelling", spellings(""))
@pytest.mark.parametrize("escapes_slash", [False, True])
def test_a_value_is_found_in_every_spelling_and_the_rest_stays(value: str, spelling: str, escapes_slash: bool) -> None:
    text = f"before {spellings(value)[spelling]} behind"
    for ensure_ascii in (True, False):
        written = json.dumps({"n": 1, "text": text, "other": [True]}, ensure_ascii=ensure_ascii)
        message = (written.replace("/", "\\/") if escapes_slash else written).encode()
        masked = SecretMask([KEY.upper(), value]).masked(message)
        found = json.loads(masked)
        assert found["n"] == 1
        assert found["other"] == [True]
        assert MASK.decode() in found["text"]
        assert found["text"].startswith("before ")
        assert found["text"].endswith(" behind")
        assert value not in found["text"]


def of_go(text: str) -> str:
    """As encoding/json writes it."""
    written = json.dumps(text, ensure_ascii=False)
    return written.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def of_net(text: str) -> str:
    """As System.Text.Json writes it."""
    kept = "".join(map(chr, range(32, 127))).translate({ord(each): None for each in "\"\\<>&'+`"})
    return (
        '"' + "".join(each if each in kept else f"\\u{ord(each):04X}" for each in text).replace("\\u005C", "\\\\") + '"'
    )


@pytest.mark.parametrize("write", [of_go, of_net, json.dumps])
@pytest.mark.parametrize("write_inside", [of_go, of_net, json.dumps, str])
@pytest.mark.parametrize("value", ["aB3+/xYz9==&<k>'q!*~ü", "qUx+9fE/2aLm==", SECRET])
def test_encoders_that_escape_more_than_they_must(
    value: str, write: Callable[[str], str], write_inside: Callable[[str], str]
) -> None:
    token = base64.b64encode(b"me:" + value.encode()).decode()
    for text in (value, token, quote(value)):
        message = b'{"text":%b}' % write(write_inside(text)).encode()
        assert json.loads(message)["text"]
        masked = SecretMask([value]).masked(message)
        assert MASK.decode() in json.loads(masked)["text"]


def test_an_address_keeps_what_its_encoder_keeps() -> None:
    value = "it's/(a)+k!ey&9*"
    for safe in ("/", "!'()*", "!'()*;,/?:@&=+$#"):
        masked = SecretMask([value]).masked(json.dumps({"text": quote(value, safe=safe)}).encode())
        assert json.loads(masked)["text"] == MASK.decode()


def test_what_holds_no_value_is_the_same_object() -> None:
    message = json.dumps({"text": KEY[:-1]}).encode()
    assert SecretMask([KEY]).masked(message) is message
    assert SecretMask().masked(message) is message


def test_a_number_leaves_no_json() -> None:
    masked = SecretMask(["1234567890123457"]).masked(b'{"id":1234567890123457}')
    with pytest.raises(ValueError, match="Expecting value"):
        json.loads(masked)


def test_the_values_are_never_printed() -> None:
    assert KEY not in repr(SecretMask([KEY]))
