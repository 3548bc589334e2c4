"""The name that is typed before something ends for good."""

from __future__ import annotations

from django.http import HttpRequest


def name_refusal(request: HttpRequest, name: str, *, because: str = "") -> str:
    """What to tell somebody who did not type `name`, with the reason if there is one; empty if they did."""
    if request.POST.get("typed_name", "").strip() == name:
        return ""
    return f"Type {name} to confirm{f': {because}' if because else ''}."
