"""The catalog, read from the database at each call. The proxy caches it by epoch; pages do not."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from gateway.catalog.catalog import Catalog
from gateway.catalog.models import VendorRow
from gateway.catalog.registered_clients import with_client
from gateway.catalog.vendor import Vendor, vendor_from_json
from gateway.lib.errors import NotFound
from gateway.lib.variables import readable

logger = logging.getLogger(__name__)


def load() -> Catalog:
    rows = VendorRow.objects.values_list("slug", "definition")
    return Catalog(vendor for slug, definition in rows if (vendor := _vendor(slug, definition)) is not None)


def vendor_or_none(slug: str) -> Vendor | None:
    definition = VendorRow.objects.filter(slug=slug).values_list("definition", flat=True).first()
    return None if definition is None else _vendor(slug, definition)


def known_vendor(slug: str) -> Vendor:
    """The vendor that a path names. Raises: NotFound. Spec: D64"""
    vendor = vendor_or_none(slug)
    if vendor is None:
        raise NotFound
    return vendor


def _vendor(slug: str, definition: Mapping[str, object]) -> Vendor | None:
    try:
        return with_client(vendor_from_json(definition), readable)
    except ValueError:
        # A row of another release may be unreadable. Skip it: the other vendors must keep working.
        logger.exception("the catalog row of vendor %s cannot be read; load the catalog again", slug)
        return None
