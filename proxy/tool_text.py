"""Pure: what a vendor says about its tools, made fit to be judged by a person: hidden characters, differences, hints.

Spec: ux.md 7 · reliability.md 2 (CVE-2025-54136)
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher, unified_diff
from typing import Literal

from gateway.lib.text import BLANKS, JOINERS, is_unseen

Kind = Literal["same", "added", "removed"]
MAX_COMPARED = 200  # words or lines, without those at both ends that are the same: comparing takes cubic time at worst
MAX_LINES = 1_000  # of one text that is shown whole
# They choose between shapes of the character before them, and can spell out any text that no screen shows.
_SELECTORS = frozenset(map(chr, (0x180B, 0x180C, 0x180D, 0x180F, *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
_AS_TEXT_OR_PICTURE = frozenset("\ufe0e\ufe0f")
_UNSEEN_MARKS = frozenset("\u034f\u17b4\u17b5")
_PICTURED = frozenset("0123456789#*\u2139")  # no signs, and there is a picture of them
# Most of every text is none of these: what may be hidden.
_unusual = re.compile(rf"[^\w -~\n\t]|[{''.join(sorted(BLANKS))}]")
_words = re.compile(r"\s+|[^\s]+")


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of text, and whether it is in both versions."""

    kind: Kind
    text: str


@dataclass(frozen=True, slots=True)
class Shown:
    """A text with each hidden character spelled out, and how many there are."""

    text: str
    hidden: int


def shown(text: str) -> Shown:
    """`text` with characters that no screen shows, or that reorder what it shows, as `[U+200B]`.

    Line breaks and tabs stay, joiners where they join (between letters or signs that are not ASCII), and directly after
    a sign the choice between text and picture.
    """
    hidden = 0

    def spelled(found: re.Match[str]) -> str:
        nonlocal hidden
        character, position = found[0], found.start()
        if not _is_hidden(character) or _joins(text, position) or _is_picture(text, position):
            return character
        hidden += 1
        return f"[U+{ord(character):04X}]"

    return Shown(_unusual.sub(spelled, text), hidden)


def word_difference(before: str, after: str) -> list[Piece]:
    """What was taken out of a text and what was put in, word by word; both whole when they are too long to compare."""
    old, new = _words.findall(before), _words.findall(after)
    head, tail = _same_ends(old, new)
    kept = old[len(old) - tail :]
    first, old, new = old[:head], old[head : len(old) - tail], new[head : len(new) - tail]
    if max(len(old), len(new)) > MAX_COMPARED:
        return _pieces([("removed", before), ("added", after)])
    found: list[tuple[Kind, str]] = [("same", "".join(first))]
    out, put = "", ""  # what goes out and comes in between two words that stay
    for what, old_from, old_to, new_from, new_to in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        before_text, after_text = "".join(old[old_from:old_to]), "".join(new[new_from:new_to])
        if what != "equal" or ((out or put) and before_text.isspace() and old_to < len(old)):
            out, put = out + before_text, put + after_text
        else:
            found += [("removed", out), ("added", put), ("same", before_text)]
            out, put = "", ""
    return _pieces([*found, ("removed", out), ("added", put), ("same", "".join(kept))])


def line_difference(before: str, after: str) -> list[Piece]:
    """The lines that differ, each with the one before and after it; an empty list when none does.

    Where one text is empty, or more differ than can be compared, all lines of both, each text up to MAX_LINES.
    """
    old, new = before.splitlines(), after.splitlines()
    if old == new:
        return []
    head, tail = _same_ends(old, new)
    if not (old and new) or max(len(old), len(new)) - head - tail > MAX_COMPARED:
        return _pieces([*_all_lines("removed", old), *_all_lines("added", new)])
    start, end = max(head - 1, 0), max(tail - 1, 0)  # one line on either side stays, to stand beside
    found: list[tuple[Kind, str]] = []
    for line in list(unified_diff(old[start : len(old) - end], new[start : len(new) - end], n=1, lineterm=""))[2:]:
        if line.startswith("@@"):
            found.append(("same", "…\n"))
        else:
            kind: Kind = {"+": "added", "-": "removed"}.get(line[0], "same")  # type: ignore[assignment]
            found.append((kind, line[1:] + "\n"))
    return _pieces(found)


def hints(annotations: object) -> list[str]:
    """The vendor's claims about a tool, as words: read-only, destructive, writes. Nobody can check them."""
    given: Mapping[str, object] = annotations if isinstance(annotations, dict) else {}
    if given.get("readOnlyHint") is True:
        return ["read-only"]
    if given.get("destructiveHint") is True:
        return ["destructive"]
    if given.get("readOnlyHint") is False or given.get("destructiveHint") is False:
        return ["writes"]
    return []


def _same_ends(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """How many items both begin with, and how many of the others both end with."""
    shorter = min(len(old), len(new))
    head = next((at for at in range(shorter) if old[at] != new[at]), shorter)
    rest = shorter - head
    return head, next((at for at in range(rest) if old[-1 - at] != new[-1 - at]), rest)


def _all_lines(kind: Kind, lines: Sequence[str]) -> list[tuple[Kind, str]]:
    found: list[tuple[Kind, str]] = [(kind, line + "\n") for line in lines[:MAX_LINES]]
    if len(lines) > MAX_LINES:
        found.append(("same", f"… and {len(lines) - MAX_LINES} more lines\n"))
    return found


def _pieces(found: Sequence[tuple[Kind, str]]) -> list[Piece]:
    return [Piece(kind, text) for kind, text in found if text]


def _is_hidden(character: str) -> bool:
    if character in "\n\t":
        return False
    if character in BLANKS or character in JOINERS or character in _SELECTORS or character in _UNSEEN_MARKS:
        return True
    return is_unseen(character)


def _joins(text: str, position: int) -> bool:
    """Persian and Indic spelling and composed emoji need joiners; English does not."""
    if text[position] not in JOINERS or not 0 < position < len(text) - 1:
        return False
    return not any(beside.isascii() or beside in JOINERS for beside in (text[position - 1], text[position + 1]))


def _is_picture(text: str, position: int) -> bool:
    """Emoji are written so; a letter has no picture."""
    if text[position] not in _AS_TEXT_OR_PICTURE or position == 0:
        return False
    before = text[position - 1]
    if before in _PICTURED:
        return True
    return not (before.isascii() or _is_hidden(before)) and unicodedata.category(before)[0] in "SPC"
