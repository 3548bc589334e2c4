"""Pure: which characters may stand in credential values, and how a value from a file is shown in an error line."""

import unicodedata

_REFUSED_CATEGORIES = frozenset({"Cc", "Cs", "Zl", "Zp"})


def has_control_characters(text: str) -> bool:
    """True if a character could end a line, hide itself, or cannot be encoded (lone surrogates).

    Spec: D64
    """
    if text.isascii() and text.isprintable():
        return False
    return any(unicodedata.category(character) in _REFUSED_CATEGORIES for character in text)


def one_line(value: object, *, limit: int = 60) -> str:
    """Return `value` on one line, cut after `limit` characters: safe to put into an error line."""
    text = str(value)
    if len(text) > limit:
        text = text[: limit - 3] + "..."
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
