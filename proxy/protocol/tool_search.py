"""Pure: finds tools by words, with BM25 over names, titles, descriptions and argument names.

An index belongs to one vendor's list and is shared by all callers of that list. A search joins the indexes of the
vendors that a caller may use, so a word that is rare among all their tools weighs most.
"""

from __future__ import annotations

import heapq
import math
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

# BM25: how soon a repeated word stops to add, and how much a long text counts against its tool.
_SATURATION: Final = 1.2
_LENGTH_SHARE: Final = 0.4
_NAME, _TITLE, _TEXT = 4, 3, 1
_RELATED_SHARE: Final = 0.45  # of the weight of a word that only means much the same as the asked one
# Of one text; the rest says little about the tool.
_MAX_CHARACTERS: Final = 4_000
_MAX_ASKED: Final = 16  # different words of a query
_POSTING_BYTES, _TERM_BYTES, _TOOL_BYTES = 8, 190, 60  # estimates
# Longer runs of letters are no words: in pieces, they fit the estimates and the memory of stems.
_word = re.compile(r"[a-z]{1,40}|[0-9]{1,40}")
_camel_case = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")

# Words for the same act or thing in the interfaces of vendors. A word stands in one row.
_SAME: Final = (
    "create add new make open insert register start",
    "delete remove destroy drop erase",
    "update edit change modify set rename alter renew",
    "list show all every which browse",
    "search find query lookup look where",
    "get read fetch retrieve view detail describe",
    "send post write deliver reply message",
    "close resolve finish complete done",
    "cancel stop abort terminate end",
    "ticket issue incident case bug",
    "user person people member contact colleague employee",
    "company organization account customer client",
    "device computer machine endpoint asset host server",
    "document page file note article doc",
    "invoice bill charge",
    "meeting event appointment calendar",
    "error exception crash failure",
    "repository repo",
    "picture image photo",
    "assign owner responsible",
    "comment remark note",
    "alert alarm warning notification",
    "run execute launch trigger install",
    "upload attach import",
    "download export",
    "channel chat room conversation",
    "mail email",
)
# Rows above that stand for an act begin with these words; questions begin with those of _QUESTIONS.
_ACTS: Final = ("create", "delete", "update", "list", "search", "get", "send", "close", "cancel")
_READING: Final = frozenset(("list", "search", "get"))
_WRITING: Final = frozenset(("create", "send"))
_QUESTIONS: Final = frozenset("who what which when where how why".split())
_ACT_FACTOR: Final = 1.35  # of the score of a tool that does what was asked
# Tools for one thing fill the first hits where a question has its name by chance.
_MAX_ALIKE: Final = 3
_ALIKE_SHARE: Final = 0.6
_ENDINGS: Final = (("ies", "y"), ("sses", "ss"), ("xes", "x"), ("ches", "ch"), ("shes", "sh"), ("s", ""))
_VERB_ENDINGS: Final = ("ing", "ed")
_STOPS: Final = frozenset(
    "a an and are as at be by can do does for from has have how i if in into is it its me my of on or our please so"
    " that the their them then there these they this to us was we what when who whose will with would you your".split()
)


@lru_cache(maxsize=8192)
def _stem(word: str) -> str:
    for ending, replaced in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 2 and not word.endswith(("ss", "us", "is")):
            word = word[: -len(ending)] + replaced
            break
    for ending in _VERB_ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            if word[-1] == word[-2] and word[-1] not in "lsz":
                word = word[:-1]
            break
    return word.removesuffix("e") if len(word) > 3 else word


def words(text: str) -> list[str]:
    """The stems of a text, without words that say nothing."""
    return [_stem(word) for word in _word.findall(_camel_case.sub(" ", text).lower()) if word not in _STOPS]


def _related() -> dict[str, frozenset[str]]:
    rows = [frozenset(map(_stem, row.split())) for row in _SAME]
    found: dict[str, frozenset[str]] = {}
    for row in rows:
        for word in row:
            found[word] = found.get(word, frozenset()) | (row - {word})
    return found


_RELATED: Final = _related()
# A message is sent where it is created.
_ACT_OF: Final = {_stem(word): "write" for word in ("book", "schedule", "publish", "print", "order", "enter")} | {
    _stem(word): "read" if row.split()[0] in _READING else "write" if row.split()[0] in _WRITING else row.split()[0]
    for row in _SAME
    if row.split()[0] in _ACTS
    for word in row.split()
}


def _act(stems: Iterable[str]) -> str:
    """The act of the first verb; empty without one."""
    return next((_ACT_OF[word] for word in stems if word in _ACT_OF), "")


def _thing(stems: Iterable[str]) -> int:
    """A number for the thing of a tool: equal for tools that create and delete the same."""
    return hash(frozenset(word for word in stems if word not in _ACT_OF))


def _asked_act(query: str) -> str:
    """A question wants to read. Otherwise a verb that changes something decides."""
    first = _word.search(query.lower())
    if first and first.group() in _QUESTIONS:
        return "read"
    acts = [_ACT_OF[word] for word in words(query) if word in _ACT_OF]
    return next((act for act in acts if act != "read"), "read" if acts else "")


@dataclass(frozen=True, slots=True)
class SearchIndex:
    """One list. Postings of a word: pairs of the number of a tool and the weight of the word in it."""

    names: tuple[str, ...]
    acts: tuple[str, ...]
    things: tuple[int, ...]
    postings: Mapping[str, array[int]]
    lengths: array[int]

    @property
    def kept_bytes(self) -> int:
        """An estimate of its memory."""
        held = sum(_TERM_BYTES + _POSTING_BYTES * len(each) for each in self.postings.values())
        return held + _TOOL_BYTES * len(self.names)


def index_of(definitions: Iterable[Mapping[str, Any]], vendor: str) -> SearchIndex:
    """`definitions`: as tools/list shows them; `vendor`: its name, which callers say too."""
    names: list[str] = []
    postings: dict[str, array[int]] = {}
    lengths: array[int] = array("I")
    vendor_words = dict.fromkeys(words(vendor), _TITLE)
    for number, definition in enumerate(definitions):
        weights = Counter(vendor_words)
        for weight, text in _texts(definition):
            for word in words(text[:_MAX_CHARACTERS]):
                weights[word] += weight
        names.append(definition["name"])
        lengths.append(sum(weights.values()))
        for word, weight in weights.items():
            postings.setdefault(word, array("I")).extend((number, weight))
    stems = [words(name) for name in names]
    return SearchIndex(tuple(names), tuple(map(_act, stems)), tuple(map(_thing, stems)), postings, lengths)


def _texts(definition: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    yield _NAME, definition["name"]
    annotations = definition.get("annotations")
    title = definition.get("title") or (annotations.get("title") if isinstance(annotations, Mapping) else None)
    if isinstance(title, str):
        yield _TITLE, title
    if isinstance(text := definition.get("description"), str):
        yield _TEXT, text
    schema = definition.get("inputSchema")
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if isinstance(properties, Mapping):
        yield _TEXT, " ".join(map(str, properties))


def ranked(indexes: Sequence[SearchIndex], query: str) -> Iterator[tuple[int, str]]:
    """Tools with at least one asked word, the best first: the place of their index in `indexes`, and their name."""
    plain, act = query.strip().lower(), _asked_act(query)
    best = [
        (-score * _factor(index, number, plain, act), index.names[number], place, number)
        for place, (index, scored) in enumerate(zip(indexes, _scores(indexes, query), strict=True))
        for number, score in scored.items()
    ]
    heapq.heapify(best)
    seen, held = Counter[tuple[int, int]](), set[tuple[int, int]]()
    while best:
        negative, name, place, number = heapq.heappop(best)
        thing = place, indexes[place].things[number]
        if seen[thing] >= _MAX_ALIKE and (place, number) not in held:
            held.add((place, number))
            heapq.heappush(best, (negative * _ALIKE_SHARE, name, place, number))
            continue
        seen[thing] += 1
        yield place, name


def _scores(indexes: Sequence[SearchIndex], query: str) -> list[dict[int, float]]:
    """BM25 by the number of a tool, for each index."""
    tools = sum(len(index.names) for index in indexes)
    mean = sum(sum(index.lengths) for index in indexes) / max(1, tools)
    scores: list[dict[int, float]] = [{} for _ in indexes]
    for word, share in _asked(query).items():
        found = [index.postings.get(word) for index in indexes]
        holders = sum(len(each) // 2 for each in found if each is not None)
        rarity = math.log1p((tools - holders + 0.5) / (holders + 0.5)) * share
        for index, each, scored in zip(indexes, found, scores, strict=True):
            for number, weight in _pairs(each):
                damped = _SATURATION * (1 - _LENGTH_SHARE + _LENGTH_SHARE * index.lengths[number] / mean)
                scored[number] = scored.get(number, 0.0) + rarity * weight * (_SATURATION + 1) / (weight + damped)
    return scores


def _factor(index: SearchIndex, number: int, plain: str, act: str) -> float:
    """An exact name is always first."""
    if index.names[number].lower() == plain:
        return math.inf
    return _ACT_FACTOR if act and index.acts[number] == act else 1.0


def _asked(query: str) -> dict[str, float]:
    """Each word to look for, and its share: 1 for an asked one. The first words of a long query count."""
    asked = dict.fromkeys(list(dict.fromkeys(words(query)))[:_MAX_ASKED], 1.0)
    for word in list(asked):
        for related in _RELATED.get(word, ()):
            asked.setdefault(related, _RELATED_SHARE)
    return asked


def _pairs(posting: array[int] | None) -> Iterator[tuple[int, int]]:
    if posting is not None:
        values = iter(posting)
        yield from zip(values, values, strict=True)
