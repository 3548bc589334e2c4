"""Where the documents explain an error code, for answers that have no member for it."""

from __future__ import annotations

from django.conf import settings

PATH = "/docs/errors"


def address(code: str) -> str:
    return f"{settings.BASE_URL}{PATH}#{code}"


def link(code: str) -> str:
    """The value of a `Link` header. RFC 8288"""
    return f'<{address(code)}>; rel="help"'
