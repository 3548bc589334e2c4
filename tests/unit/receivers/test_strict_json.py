"""Texts that some parsers take and others do not."""

from __future__ import annotations

import pytest

from tests.receivers.strict_json import NotJson, first_of, parsed, text_of

pytestmark = pytest.mark.one_back_end


def test_plain_json_is_read() -> None:
    assert parsed(' {"a": [1, 2.5, "\\ud83d\\ude00", null]} ') == {"a": [1, 2.5, "😀", None]}
    assert first_of('{"a": 1}{"b": 2}', 8) == ({"b": 2}, 16)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a": 1, "a": 2}', "a name occurs twice"),
        ("NaN", "NaN is not JSON"),
        ("[-Infinity]", "-Infinity is not JSON"),
        ('"\\ud800"', "half of a surrogate pair"),
        ("{} {}", "Extra data"),
        ("", "Expecting value"),
        ("[" * 100_000, "recursion"),
    ],
)
def test_what_is_not_json(text: str, words: str) -> None:
    with pytest.raises(NotJson, match=words):
        parsed(text)


def test_a_text_that_is_not_utf_8() -> None:
    with pytest.raises(NotJson, match="not UTF-8"):
        text_of(b"\xff")
