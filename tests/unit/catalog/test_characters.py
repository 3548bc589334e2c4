"""Characters: what a credential value may not hold, and error lines that stay one line."""

import pytest

from gateway.catalog.characters import has_control_characters, one_line


@pytest.mark.parametrize("text", ["", "token", "pässwörd", "a b", "日本", "nbsp\u00a0inside"])
def test_ordinary_text_is_accepted(text: str) -> None:
    assert not has_control_characters(text)


@pytest.mark.parametrize("character", ["\r", "\n", "\0", "\t", "\x1b", "\x7f", "\x85", "\u2028", "\u2029", "\ud800"])
def test_what_ends_a_line_or_cannot_be_encoded_is_found(character: str) -> None:
    assert has_control_characters(f"before{character}after")


def test_one_line_keeps_text_and_escapes_what_breaks_lines() -> None:
    assert one_line("naïve") == "naïve"
    assert one_line("a\nb\u2028c") == "a\\nb\\u2028c"
    assert one_line("x" * 100) == "x" * 57 + "..."
