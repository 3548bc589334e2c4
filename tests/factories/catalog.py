"""Vendors for tests that only need to name one."""

from __future__ import annotations

from tests.factories.tenant import load_vendor

CLOSED = "http://127.0.0.1:9/mcp"


def load_vendors(*slugs: str) -> None:
    """Vendors at an address where nobody answers."""
    for slug in slugs:
        load_vendor(CLOSED, slug=slug)
