"""Search over the documents: each part of one, by its words. The index is built once for each process, at first use."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from gateway.site.help.library import Document, library

MAX_WORDS = 8
MAX_HITS = 20
_WORD = re.compile(r"[\w-]+")
_EXCERPT_CHARACTERS = 180
_LEAD_CHARACTERS = 60
# A word in a title says more than one in a text, where it may be a detail.
_OF_TITLE, _OF_HEADING, _OF_TEXT, _TEXT_COUNTS_UP_TO = 6, 8, 1, 4
# A whole word says more than the beginning of one.
_WHOLE, _BEGINNING = 2, 1


@dataclass(frozen=True, slots=True)
class Hit:
    """`excerpt`: pieces of text, and whether each is a word of the query."""

    document: Document
    heading: str
    url: str
    excerpt: tuple[tuple[str, bool], ...]


@dataclass(frozen=True, slots=True)
class _Part:
    document: Document
    heading: str
    url: str
    text: str
    title_words: Counter[str]
    heading_words: Counter[str]
    text_words: Counter[str]

    def score(self, word: str) -> int:
        return (
            _OF_TITLE * _weight(self.title_words, word)
            + _OF_HEADING * _weight(self.heading_words, word)
            + _OF_TEXT * min(_TEXT_COUNTS_UP_TO, _weight(self.text_words, word))
        )


class Index:
    def __init__(self, documents: Sequence[Document]) -> None:
        self._parts = [part for document in documents for part in _parts(document)]

    def find(self, query: str) -> list[Hit]:
        """The parts with every word of the query or a word that begins with it, best first."""
        words = tuple(dict.fromkeys(_words(query)))[:MAX_WORDS]
        if not words:
            return []
        scored = ((_score(part, words), -place, part) for place, part in enumerate(self._parts))
        best = sorted((each for each in scored if each[0]), reverse=True, key=lambda each: each[:2])
        return [
            Hit(part.document, part.heading, part.url, _excerpt(part.text, words)) for _, _, part in best[:MAX_HITS]
        ]


@lru_cache(maxsize=1)
def index() -> Index:
    return Index(library().documents)


def _parts(document: Document) -> Iterator[_Part]:
    title = Counter(_words(document.title))
    for section in document.content.sections:
        url = f"{document.url}#{section.id}" if section.id else document.url
        text = section.text
        heading = Counter(_words(section.heading))
        yield _Part(document, section.heading, url, text, title, heading, Counter(_words(text)))


def _words(text: str) -> Iterator[str]:
    return (found.group() for found in _WORD.finditer(text.lower()))


def _score(part: _Part, words: Sequence[str]) -> int:
    """0 where a word is missing."""
    scores = [part.score(word) for word in words]
    return sum(scores) if all(scores) else 0


def _weight(words: Counter[str], word: str) -> int:
    if word in words:
        return _WHOLE * words[word]
    return _BEGINNING * sum(number for each, number in words.items() if each.startswith(word))


def _excerpt(text: str, words: Sequence[str]) -> tuple[tuple[str, bool], ...]:
    found = re.compile(r"\b(" + "|".join(map(re.escape, words)) + ")", re.I)
    first = found.search(text)
    start = max(0, first.start() - _LEAD_CHARACTERS) if first else 0
    # A part begins and ends with a whole word.
    start = text.find(" ", start) + 1 if start else 0
    cut = text[start : start + _EXCERPT_CHARACTERS]
    if start + _EXCERPT_CHARACTERS < len(text):
        cut = f"{cut.rpartition(' ')[0]} …"
    pieces = found.split(f"… {cut}" if start else cut)
    return tuple((piece, at % 2 == 1) for at, piece in enumerate(pieces) if piece)
