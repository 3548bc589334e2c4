"""Pure: the rule for names that people type, and which characters are invisible."""

from __future__ import annotations

import unicodedata

from gateway.lib.errors import Invalid

NAME_MAX_CHARACTERS = 100
# NFC takes quadratic time on long runs of combining marks, so longer text is refused before it. A character of NFC
# replaces at most 4 others.
_RAW_CHARACTERS_PER_CHARACTER = 4
_FORBIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
# Format characters (Cf: direction marks, tags) reorder or hide text in lists, logs and exports. Joiners are allowed:
# Persian and Indic spelling and composed emoji need them.
JOINERS = frozenset("\u200c\u200d")
# By category letters and symbols, but blank on every screen.
BLANKS = frozenset("\u115f\u1160\u2800\u3164\uffa0")
_DEFAULT_IGNORABLE_UNASSIGNED = (range(0x2065, 0x2066), range(0xFFF0, 0xFFF9), range(0xE0000, 0xE1000))


def clean_name(raw: str, *, max_characters: int = NAME_MAX_CHARACTERS, allow_empty: bool = False) -> str:
    """The name trimmed and in NFC. Raises: ValueError with a sentence for the user.   Spec: D17"""
    name = raw.strip()
    if len(name) <= max_characters * _RAW_CHARACTERS_PER_CHARACTER:
        name = unicodedata.normalize("NFC", name).strip()
    if not name and allow_empty:
        return name
    if len(name) > max_characters:
        raise ValueError(f"Use at most {max_characters} characters.")
    if any(is_unseen(character) for character in name):
        raise ValueError("Control and direction characters are not allowed.")
    if not any(_is_visible(character) for character in name):
        raise ValueError("Enter a name.")
    return name


def checked_name(raw: str) -> str:
    """`clean_name` for the field `name`. Raises: Invalid with `fields`."""
    try:
        return clean_name(raw)
    except ValueError as fault:
        raise Invalid(fields={"name": [str(fault)]}) from fault


def is_unseen(character: str) -> bool:
    """Whether a character controls, reorders or hides text instead of showing something. Joiners do not count."""
    if character in JOINERS:
        return False
    category = unicodedata.category(character)
    if category == "Cn":
        # Unassigned in this Python's Unicode, perhaps a later emoji: only code points that never become text count.
        point = ord(character)
        is_noncharacter = point & 0xFFFE == 0xFFFE or 0xFDD0 <= point <= 0xFDEF
        return is_noncharacter or any(point in hidden for hidden in _DEFAULT_IGNORABLE_UNASSIGNED)
    return category in _FORBIDDEN_CATEGORIES


def _is_visible(character: str) -> bool:
    # Marks and joiners alone show nothing; unassigned characters may be visible in a later Unicode.
    category = unicodedata.category(character)
    return character not in BLANKS and (category[0] in "LNPS" or category == "Cn")
