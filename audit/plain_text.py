"""Pure: how text from outside is stored: tool, client and person names reach pages, logs, exports and the database."""

from __future__ import annotations

import re

# Line ends forge log lines, ESC rewrites a terminal, NUL and lone surrogates are refused by PostgreSQL and would fail
# the rows they share a commit with, direction and zero-width marks make one name look like another.
_HARMFUL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
REPLACEMENT = "\ufffd"


def plain_text(raw: str, *, max_characters: int) -> str:
    """`raw` on one line, cut to its column; a harmful character becomes U+FFFD, so that tampering stays visible."""
    text = raw[:max_characters]
    return text if text.isprintable() else _HARMFUL.sub(REPLACEMENT, text)


def has_harmful_characters(text: str) -> bool:
    """Whether `text` could not be stored as it is."""
    return not text.isprintable() and _HARMFUL.search(text) is not None
