"""Every page that a browser can open, found in the URL configuration, with the ids of one organization's things."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver

# Answers for programs, Django's own site for staff, steps of a sign-in, the form that chooses a language, and the page
# behind a signed link of a message (tests/api/mail/test_unsubscribe.py).
NOT_PAGES = re.compile(
    r"(api/|v1/|oidc/|admin/|oauth/|\.well-known/|health$|ready$|language$|mail/unsubscribe/|vendor-oauth/|status\.)"
)
DOCUMENT = "errors"  # of those below /docs
OPERATION = "create_team"  # of the management API
VARIABLE = re.compile(r"<(?:\w+:)?(\w+)>")


def page_routes() -> Iterator[str]:
    """The routes of pages as the URL configuration has them, each once."""
    seen = set[str]()
    for route, pattern in _patterns(get_resolver().url_patterns, ""):
        is_moved = (pattern.name or "").startswith("moved-")
        if not is_moved and not NOT_PAGES.match(route) and route not in seen:
            seen.add(route)
            yield route


def page_paths(things: Mapping[str, str]) -> dict[str, str]:
    """The address of each page by its route; `things` has the ids of the organization's things. Raises: KeyError."""
    values = {"document": DOCUMENT, "operation": OPERATION, **things}
    return {route: "/" + VARIABLE.sub(lambda found: values[found[1]], route) for route in page_routes()}


def _patterns(patterns: list[Any], prefix: str) -> Iterator[tuple[str, URLPattern]]:
    for pattern in patterns:
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from _patterns(pattern.url_patterns, route)
        elif isinstance(pattern, URLPattern):
            yield route, pattern
