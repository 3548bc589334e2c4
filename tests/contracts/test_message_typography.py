"""Messages have the apostrophes, quotation marks, ellipses and dashes of CONTRIBUTING.md, in both languages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from babel.messages.catalog import Message
from babel.messages.pofile import read_po

from scripts.messages import forms

ROOT = Path(__file__).parents[2]
CATALOG = ROOT / "locale/de/LC_MESSAGES/django.po"
# Code, attributes of tags, values of messages and commands between backticks.
NOT_PROSE = re.compile(r"<code>.*?</code>|<[^>]*>|%\(\w+\)[sd]|\{\w+\}|`[^`]*`")
# Characters that a platform allows, one after the other.
LITERALS = re.compile(r"! - _ \. \* ' \( \)|\. _ \+ -")
ENGLISH = re.compile(r"['\"`‚„‘«»]|\.\.\.| [-–—] |[–—]")
# The “ of German closes a quotation; a dash may stand before a word that is set apart.
GERMAN = re.compile(r"['\"`”«»]|\.\.\.|\w…| [-—] |—")


def messages() -> Iterator[Message]:
    with CATALOG.open("rb") as file:
        yield from (message for message in read_po(file, locale="de") if message.id)


def marks(text: str, unwanted: re.Pattern[str]) -> list[str]:
    return unwanted.findall(LITERALS.sub("", NOT_PROSE.sub("", text)))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It can’t be shown. Choose “All”…", []),
        ("It can't be shown.", ["'"]),
        ('Choose "All".', ['"', '"']),
        ("Loading...", ["..."]),
        ("Saved – almost", [" – "]),
        ('<a href="%(url)s">%(name)s</a>', []),
        ("Add one with `manage.py add_member --role owner`.", []),
    ],
)
def test_other_marks_are_found(text: str, found: list[str]) -> None:
    assert marks(text, ENGLISH) == found


def test_english_messages_have_curly_marks() -> None:
    texts = [text for message in messages() for text in forms(message.id)]
    assert len(texts) > 2_000
    assert [text for text in texts if marks(text, ENGLISH)] == []


def test_german_messages_have_german_marks() -> None:
    texts = [text for message in messages() for text in forms(message.string)]
    assert [text for text in texts if marks(text, GERMAN)] == []
    unpaired = [text for text in texts if text.count("„") != text.count("“")]
    assert unpaired == []


def test_descriptions_of_oauth_errors_are_ascii() -> None:
    """Spec: RFC 6749 4.1.2.1 and 5.2. They travel in addresses and headers."""
    from oauth_ext import authorize_request

    source = Path(authorize_request.__file__).read_text()
    raised = re.findall(r"_ParameterError\(\s*\"\w+\",\s*(?:sentence|gettext)?\(?\s*\"([^\"]+)\"", source)
    assert len(raised) > 3
    assert [text for text in raised if not text.isascii()] == []
