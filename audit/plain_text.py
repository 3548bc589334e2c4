"""Pure: text from outside (names of tools, clients, people) as it is stored, shown, logged and exported."""

from __future__ import annotations

from gateway.lib.hidden_text import replace_hidden

REPLACEMENT = "\ufffd"
_ONE_LINE = str.maketrans("\n\t", REPLACEMENT * 2)


def plain_text(raw: str, *, max_characters: int) -> str:
    """Returns one line of at most `max_characters`; each harmful character becomes U+FFFD."""
    text = raw[:max_characters]
    if text.isascii() and text.isprintable():
        return text
    # Line ends forge log lines, ESC rewrites a terminal, and hidden characters disguise a name. PostgreSQL refuses NUL
    # and lone surrogates, with every row of the same commit.
    return replace_hidden(text, lambda _: REPLACEMENT)[0].translate(_ONE_LINE)


def has_harmful_characters(text: str) -> bool:
    return plain_text(text, max_characters=len(text)) != text
