"""Confirmation of an irreversible action by typing a name."""

from __future__ import annotations

from django.http import HttpRequest


def name_refusal(request: HttpRequest, name: str, *, because: str = "") -> str:
    """The message for a form where `name` was not typed; empty if it was."""
    if request.POST.get("typed_name", "").strip() == name:
        return ""
    return f"Type {name} to confirm{f': {because}' if because else ''}."
