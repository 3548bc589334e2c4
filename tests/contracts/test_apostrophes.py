"""Messages of pages have typographic apostrophes, in every language."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from babel.messages.pofile import read_po

ROOT = Path(__file__).resolve().parents[2]
CATALOGS = sorted(ROOT.glob("locale/*/LC_MESSAGES/django.po"))
# Between letters, or after the s of a plural. Quotes around a character, such as '_', are none.
STRAIGHT = re.compile(r"[A-Za-zß]'[a-z]|s' ")


def texts(path: Path) -> list[str]:
    with path.open("rb") as file:
        messages = [message for message in read_po(file) if message.id]
    found = [part for message in messages for part in (message.id, message.string)]
    return [text for part in found for text in ([part] if isinstance(part, str) else part)]


@pytest.mark.parametrize("path", CATALOGS, ids=lambda path: path.parts[-3])
def test_no_message_has_a_straight_apostrophe(path: Path) -> None:
    assert [text for text in texts(path) if STRAIGHT.search(text)] == []


@pytest.mark.parametrize("text", ["can't", "the team's", "the vendors' tools", "geht's"])
def test_straight_ones_are_found(text: str) -> None:
    assert STRAIGHT.search(text)


@pytest.mark.parametrize("text", ["can’t", "only '_' and '-'", "“quoted”"])
def test_others_are_not(text: str) -> None:
    assert not STRAIGHT.search(text)
