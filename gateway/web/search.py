"""The search field of a page."""

from __future__ import annotations

from django.http import HttpRequest

MAX_SEARCH_CHARACTERS = 100  # the maxlength of the HTML fields


def search_words(request: HttpRequest, name: str) -> str:
    return " ".join(request.GET.get(name, "").split())[:MAX_SEARCH_CHARACTERS]
