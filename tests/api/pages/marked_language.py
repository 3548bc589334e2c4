"""A language in which each letter of a message is a wide one, so that words without a message stand out on a page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from django.conf import settings

LANGUAGE = "de"
# In a message: placeholders of Python and of scripts, elements that hold no words, tags, and entities.
KEPT = re.compile(r"%\(\w+\)[sd]|%[sd%]|\{\w+\}|<code.*?</code>|<[^>]*>|&\w+;", re.DOTALL)
WIDE = {ord(letter): ord(letter) + 0xFEE0 for letter in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"}
WORD = re.compile(r"[A-Za-z]{2,}")
SPOKEN = ("aria-label", "alt", "title", "placeholder", "data-busy", "data-confirm", "data-label", "data-chart-label")
SILENT = frozenset(("code", "kbd", "pre", "script", "style", "textarea", "time"))
EMPTY = frozenset(
    ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr")
)


def marked(text: str) -> str:
    """Pure: the letters of a message as wide ones."""
    pieces, end = [], 0
    for kept in KEPT.finditer(text):
        pieces += [text[end : kept.start()].translate(WIDE), kept[0]]
        end = kept.end()
    return "".join([*pieces, text[end:].translate(WIDE)])


def offer_marked_language(given: Any, folder: Path) -> None:
    """Pages of LANGUAGE are in the marked one. `given` are the settings of one test."""
    path = Path(settings.BASE_DIR) / "locale" / LANGUAGE / "LC_MESSAGES" / "django.po"
    with path.open("rb") as file:
        catalog = read_po(file, locale=LANGUAGE)
    for message in catalog:
        if message.id:
            forms = message.id
            message.string = marked(forms) if isinstance(forms, str) else tuple(map(marked, forms))
    compiled = folder / LANGUAGE / "LC_MESSAGES" / "django.mo"
    compiled.parent.mkdir(parents=True)
    with compiled.open("wb") as file:
        write_mo(file, catalog)
    given.LOCALE_PATHS = [folder]


class Page(HTMLParser):
    """Collects what a person reads or hears: texts, spoken attributes, the labels of buttons, the words of scripts."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.language = ""
        self._silent: list[str] = []
        self._foreign = 0  # elements that are open inside one of a language of its own, and itself
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "html":
            self.language = given.get("lang", "")
        if self._foreign or ("lang" in given and tag != "html"):
            self._foreign += tag not in EMPTY
        else:
            self.texts += [given[name] for name in SPOKEN if name in given]
        if tag == "template" and "data-texts" in given:
            self.texts += given.values()
        if tag in SILENT or ("lang" in given and tag != "html") or (self._silent and tag not in EMPTY):
            self._silent.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._silent:
            self._silent.pop()
        self._foreign = max(0, self._foreign - 1)

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.texts.append(data)


def bare_texts(source: str, without_data: Callable[[str], str], names: frozenset[str]) -> Iterator[str]:
    """The texts of a page that have a word which is in no message, no data and none of `names`."""
    for text in Page(source).texts:
        if any(word not in names for word in WORD.findall(without_data(KEPT.sub(" ", text)))):
            yield " ".join(text.split())
