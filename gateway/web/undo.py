"""One-step undo: after a reversible change, the next page offers the form that reverses it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest

_KEY = "undo"


def offer(request: HttpRequest, text: str, fields: Mapping[str, str]) -> None:
    request.session[_KEY] = {"path": request.path, "text": text, "fields": dict(fields)}


def take(request: HttpRequest) -> dict[str, Any] | None:
    """The offer for this path, removed from the session: `{text, fields}`."""
    found: dict[str, Any] | None = request.session.get(_KEY)
    if found is None or found["path"] != request.path:
        return None
    del request.session[_KEY]
    return found
