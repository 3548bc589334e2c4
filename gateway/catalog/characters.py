"""Pure: characters allowed in credential values, and values from files made safe for an error line."""

import unicodedata

# Unicode categories: control, surrogate, line separator, paragraph separator.
_REFUSED_CATEGORIES = frozenset({"Cc", "Cs", "Zl", "Zp"})


def has_control_characters(text: str) -> bool:
    """True for line breaks, control characters and lone surrogates (which UTF-8 cannot encode). Spec: D64"""
    if text.isascii() and text.isprintable():
        return False
    return any(unicodedata.category(character) in _REFUSED_CATEGORIES for character in text)


def one_line(value: object, *, limit: int = 60) -> str:
    """`value` on one line, cut after `limit` characters."""
    text = str(value)
    if len(text) > limit:
        text = text[: limit - 3] + "..."
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
