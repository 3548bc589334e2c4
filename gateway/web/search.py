"""What people type into the search field of a page."""

from __future__ import annotations

from django.http import HttpRequest

MAX_SEARCH_CHARACTERS = 100  # as the fields say


def search_words(request: HttpRequest, name: str) -> str:
    """What `?<name>=` asks for: words with one space between them, cut to MAX_SEARCH_CHARACTERS."""
    return " ".join(request.GET.get(name, "").split())[:MAX_SEARCH_CHARACTERS]
