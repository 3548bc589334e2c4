"""Answers of a platform."""

from __future__ import annotations

import httpx

from audit.shipping.platforms.exchange import Answer


def answer(status: int, body: str | bytes = b"", **headers: str) -> Answer:
    """A header's name has underscores for hyphens; names match in any case."""
    named = httpx.Headers({name.replace("_", "-"): value for name, value in headers.items()})
    return Answer(status, named, body.encode() if isinstance(body, str) else body)
