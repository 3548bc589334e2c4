"""Pure: characters that are invisible or reorder the text.   Spec: reliability.md 2 (CVE-2025-54136)"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from gateway.lib.text import BLANKS, JOINERS, is_unseen

# Direction marks make one name look like another. Tags and variation selectors spell out text that programs read and
# people do not see.

# Variation selectors: they choose the shape of the character before them, and can spell out any text.
_SELECTORS = frozenset(map(chr, (0x180B, 0x180C, 0x180D, 0x180F, *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
_AS_TEXT_OR_PICTURE = frozenset("\ufe0e\ufe0f")
_UNSEEN_MARKS = frozenset("\u034f\u17b4\u17b5")
_PICTURED = frozenset("0123456789#*\u2139")  # not signs by category, and drawn as pictures too
# A fast first pass: characters that may be hidden. Most text has none.
_unusual = re.compile(rf"[^\w -~\n\t]|[{''.join(sorted(BLANKS))}]")


def replace_hidden(text: str, replacement: Callable[[str], str]) -> tuple[str, int]:
    """Return `text` with each hidden character replaced, and their number."""
    # Line feeds and tabs stay, joiners between letters or signs beyond ASCII, and a choice between text and picture
    # directly after a sign. A carriage return is hidden.
    hidden = 0

    def replaced(found: re.Match[str]) -> str:
        nonlocal hidden
        character, position = found[0], found.start()
        if not is_hidden(character) or _joins(text, position) or _is_picture(text, position):
            return character
        hidden += 1
        return replacement(character)

    return _unusual.sub(replaced, text), hidden


def is_hidden(character: str) -> bool:
    """Whether the character alone shows nothing or reorders others. Joiners and variation selectors count."""
    if character in "\n\t":
        return False
    if character in BLANKS or character in JOINERS or character in _SELECTORS or character in _UNSEEN_MARKS:
        return True
    return is_unseen(character)


def _joins(text: str, position: int) -> bool:
    # Persian and Indic spelling and composed emoji need joiners; English does not.
    if text[position] not in JOINERS or not 0 < position < len(text) - 1:
        return False
    return not any(beside.isascii() or beside in JOINERS for beside in (text[position - 1], text[position + 1]))


def _is_picture(text: str, position: int) -> bool:
    if text[position] not in _AS_TEXT_OR_PICTURE or position == 0:
        return False
    before = text[position - 1]  # an emoji is a sign; a letter has no picture
    if before in _PICTURED:
        return True
    return not (before.isascii() or is_hidden(before)) and unicodedata.category(before)[0] in "SPC"
