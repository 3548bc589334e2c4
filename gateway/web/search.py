"""The search field of a page."""

from __future__ import annotations

from django.http import HttpRequest

MAX_SEARCH_CHARACTERS = 100  # the maxlength of the HTML fields


def plain_text(value: str) -> str:
    # PostgreSQL refuses a statement with NUL in a value.
    return value.replace("\0", " ").strip()


def typed_text(request: HttpRequest, name: str) -> str:
    return plain_text(request.GET.get(name, ""))


def search_words(request: HttpRequest, name: str) -> str:
    return " ".join(typed_text(request, name).split())[:MAX_SEARCH_CHARACTERS]
