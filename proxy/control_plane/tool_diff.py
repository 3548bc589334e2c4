"""Pure: vendor text prepared for human review. Spec: ux.md 7 · reliability.md 2 (CVE-2025-54136)"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher, unified_diff
from typing import Literal

from gateway.lib.hidden_text import replace_hidden
from gateway.lib.sentences import sentence

Kind = Literal["same", "added", "removed"]
MAX_COMPARED = 200  # words or lines between the common ends; SequenceMatcher takes cubic time at worst
MAX_LINES = 1_000  # of a text that is shown whole
_words = re.compile(r"\s+|[^\s]+")


@dataclass(frozen=True, slots=True)
class DiffPiece:
    # "same" is in both versions.
    kind: Kind
    text: str


@dataclass(frozen=True, slots=True)
class VisibleText:
    """A text with its invisible characters spelled out, and their number."""

    text: str
    hidden: int


def visible(text: str) -> VisibleText:
    """`text` with invisible and reordering characters as `[U+200B]`."""
    return VisibleText(*replace_hidden(text, lambda character: f"[U+{ord(character):04X}]"))


def word_diff(before: str, after: str) -> list[DiffPiece]:
    """Word-by-word difference; both texts whole when more than MAX_COMPARED words differ."""
    old, new = _words.findall(before), _words.findall(after)
    head, tail = _common_ends(old, new)
    kept = old[len(old) - tail :]
    first, old, new = old[:head], old[head : len(old) - tail], new[head : len(new) - tail]
    if max(len(old), len(new)) > MAX_COMPARED:
        return _pieces([("removed", before), ("added", after)])
    found: list[tuple[Kind, str]] = [("same", "".join(first))]
    out, put = "", ""  # removed and added text between two unchanged words
    for what, old_from, old_to, new_from, new_to in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        before_text, after_text = "".join(old[old_from:old_to]), "".join(new[new_from:new_to])
        if what != "equal" or ((out or put) and before_text.isspace() and old_to < len(old)):
            out, put = out + before_text, put + after_text
        else:
            found += [("removed", out), ("added", put), ("same", before_text)]
            out, put = "", ""
    return _pieces([*found, ("removed", out), ("added", put), ("same", "".join(kept))])


def line_diff(before: str, after: str) -> list[DiffPiece]:
    """Differing lines with one line of context; empty for equal texts."""
    old, new = before.splitlines(), after.splitlines()
    if old == new:
        return []
    head, tail = _common_ends(old, new)
    # One text is empty or too many lines differ: all lines of both, up to MAX_LINES each.
    if not (old and new) or max(len(old), len(new)) - head - tail > MAX_COMPARED:
        return _pieces([*_all_lines("removed", old), *_all_lines("added", new)])
    start, end = max(head - 1, 0), max(tail - 1, 0)  # keeps one line of context on either side
    found: list[tuple[Kind, str]] = []
    for line in list(unified_diff(old[start : len(old) - end], new[start : len(new) - end], n=1, lineterm=""))[2:]:
        if line.startswith("@@"):
            found.append(("same", "…\n"))
        else:
            kind: Kind = {"+": "added", "-": "removed"}.get(line[0], "same")  # type: ignore[assignment]
            found.append((kind, line[1:] + "\n"))
    return _pieces(found)


def hints(annotations: object) -> list[str]:
    """The vendor's unverified claims about a tool: read-only, destructive, writes."""
    given: Mapping[str, object] = annotations if isinstance(annotations, dict) else {}
    if given.get("readOnlyHint") is True:
        return [sentence("read-only")]
    if given.get("destructiveHint") is True:
        return [sentence("destructive")]
    if given.get("readOnlyHint") is False or given.get("destructiveHint") is False:
        return [sentence("writes")]
    return []


def _common_ends(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """(length of the common prefix, length of the common suffix of the rest)."""
    shorter = min(len(old), len(new))
    head = next((at for at in range(shorter) if old[at] != new[at]), shorter)
    rest = shorter - head
    return head, next((at for at in range(rest) if old[-1 - at] != new[-1 - at]), rest)


def _all_lines(kind: Kind, lines: Sequence[str]) -> list[tuple[Kind, str]]:
    found: list[tuple[Kind, str]] = [(kind, line + "\n") for line in lines[:MAX_LINES]]
    if len(lines) > MAX_LINES:
        found.append(("same", f"… and {len(lines) - MAX_LINES} more lines\n"))
    return found


def _pieces(found: Sequence[tuple[Kind, str]]) -> list[DiffPiece]:
    return [DiffPiece(kind, text) for kind, text in found if text]
