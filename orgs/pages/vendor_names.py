"""Vendors as people call them."""

from __future__ import annotations

from collections.abc import Iterable

from gateway.catalog import registry
from gateway.catalog.registry import Catalog


def vendor_names(slugs: Iterable[str], catalog: Catalog | None = None) -> list[str]:
    """The catalog's names in the order of the slugs; the slug where the catalog lost the vendor.

    Who asks more than once passes the catalog: loading it is a query.
    """
    known = registry.load() if catalog is None else catalog
    return [vendor.name if (vendor := known.get(slug)) else slug for slug in slugs]
