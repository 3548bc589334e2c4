"""Pure: how text from outside is stored: tool, client and person names reach pages, logs, exports and the database."""

from __future__ import annotations

from gateway.lib.hidden_text import replace_hidden

REPLACEMENT = "\ufffd"
_ONE_LINE = str.maketrans("\n\t", REPLACEMENT * 2)


def plain_text(raw: str, *, max_characters: int) -> str:
    """`raw` on one line, cut to its column; a harmful character becomes U+FFFD, so that tampering stays visible.

    Line ends forge log lines, ESC rewrites a terminal, NUL and lone surrogates are refused by PostgreSQL and would fail
    the rows they share a commit with, hidden characters make one name look like another.
    """
    text = raw[:max_characters]
    if text.isascii() and text.isprintable():
        return text
    return replace_hidden(text, lambda _: REPLACEMENT)[0].translate(_ONE_LINE)


def has_harmful_characters(text: str) -> bool:
    """Whether `text` could not be stored as it is."""
    return plain_text(text, max_characters=len(text)) != text
