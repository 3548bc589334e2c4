"""One step back: after a change that is easily reversed, the next page offers the form that reverses it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest

_KEY = "undo"


def offer(request: HttpRequest, text: str, fields: Mapping[str, str]) -> None:
    """The next page at this address says `text` and has a button that sends `fields` to it."""
    request.session[_KEY] = {"path": request.path, "text": text, "fields": dict(fields)}


def take(request: HttpRequest) -> dict[str, Any] | None:
    """What was offered for this address, once: `{text, fields}`."""
    found: dict[str, Any] | None = request.session.get(_KEY)
    if found is None or found["path"] != request.path:
        return None
    del request.session[_KEY]
    return found
