"""Pure: characters that no screen shows, or that reorder the text. One definition for all that store or pass text.

Direction marks make a name look like another; tags and variation selectors spell out text that a program reads and no
person sees.   Spec: reliability.md 2 (CVE-2025-54136)
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from gateway.lib.text import BLANKS, JOINERS, is_unseen

# They choose between shapes of the character before them, and can spell out any text.
_SELECTORS = frozenset(map(chr, (0x180B, 0x180C, 0x180D, 0x180F, *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
_AS_TEXT_OR_PICTURE = frozenset("\ufe0e\ufe0f")
_UNSEEN_MARKS = frozenset("\u034f\u17b4\u17b5")
_PICTURED = frozenset("0123456789#*\u2139")  # no signs, and there is a picture of them
# The characters that may be hidden; most of every text has none of them.
_unusual = re.compile(rf"[^\w -~\n\t]|[{''.join(sorted(BLANKS))}]")


def replace_hidden(text: str, replacement: Callable[[str], str]) -> tuple[str, int]:
    """`text` with `replacement` of each hidden character, and how many there are.

    Line breaks and tabs are not hidden, nor joiners where they join (between letters or signs that are not ASCII), nor,
    directly after a sign, the choice between text and picture. A carriage return is.
    """
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
    """Whether a character by itself shows nothing, or reorders what others show. Joiners and selectors count."""
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
    return not (before.isascii() or is_hidden(before)) and unicodedata.category(before)[0] in "SPC"
