from __future__ import annotations

from collections.abc import Iterable

from gateway.catalog import registry
from gateway.catalog.registry import Catalog


def vendor_names(slugs: Iterable[str], catalog: Catalog | None = None) -> list[str]:
    """Display names in the order of the slugs; the slug itself if the vendor has left the catalog."""
    # Loading the catalog is a query: callers that ask more than once pass it.
    known = registry.load() if catalog is None else catalog
    return [vendor.name if (vendor := known.get(slug)) else slug for slug in slugs]
