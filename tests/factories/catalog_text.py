"""Catalogs that a test writes: the text of one file."""

from __future__ import annotations

from gateway.catalog.parsing import read_catalog
from gateway.catalog.services import CatalogText, LoadResult, load_catalogs
from gateway.catalog.vendor import Vendor


def parse_catalog(text: str, source: str = "catalog") -> list[Vendor]:
    """Raises: CatalogErrors."""
    return list(read_catalog(text, source).vendors)


def load_catalog(text: str, source: str) -> LoadResult:
    """Raises: CatalogErrors; nothing changed."""
    return load_catalogs([CatalogText(text=text, source=source)])
