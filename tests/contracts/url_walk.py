"""Every address of the service, as the URL configuration has it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver


@dataclass(frozen=True)
class Address:
    """`route` as written, with its converters; `view` is the view's class, or the function itself.

    `callback` is what Django calls.
    """

    route: str
    view: Any
    callback: Any

    @property
    def template(self) -> str:
        """The route with `{name}` for each variable."""
        return "/" + re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", self.route)


def addresses() -> Iterator[Address]:
    """All of them, depth first."""
    return _walk(get_resolver().url_patterns, "")


def api_addresses() -> list[Address]:
    """Those of the management API."""
    return [address for address in addresses() if address.route.startswith("api/")]


def _walk(patterns: list[Any], prefix: str) -> Iterator[Address]:
    for pattern in patterns:
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from _walk(pattern.url_patterns, route)
        elif isinstance(pattern, URLPattern):
            callback = pattern.callback
            yield Address(route, getattr(callback, "cls", getattr(callback, "view_class", callback)), callback)
