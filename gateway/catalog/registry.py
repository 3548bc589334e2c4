"""The catalog in memory. Nothing is cached here: the proxy keeps a catalog by epoch, pages read the database."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType

from gateway.catalog.models import VendorRow
from gateway.catalog.vendor import SLUG_MAX_CHARACTERS, Vendor, vendor_from_json
from gateway.lib.errors import NotFound

logger = logging.getLogger(__name__)


class Catalog:
    """All vendors at one moment; it never changes. Spec: D111"""

    __slots__ = ("_by_name", "_by_prefix", "_longer", "by_slug")

    by_slug: Mapping[str, Vendor]

    def __init__(self, vendors: Iterable[Vendor]) -> None:
        self._by_name = tuple(sorted(vendors, key=lambda vendor: (vendor.name.casefold(), vendor.slug)))
        self.by_slug = MappingProxyType({vendor.slug: vendor for vendor in self._by_name})
        self._by_prefix = {vendor.tool_prefix: vendor for vendor in self._by_name}
        self._longer = _longer_prefixes(self._by_prefix)

    def all(self) -> tuple[Vendor, ...]:
        """Return every vendor, by name as a person sorts: case does not count."""
        return self._by_name

    def get(self, slug: str) -> Vendor | None:
        """Return the vendor with this slug, if there is one."""
        return self.by_slug.get(slug)

    def owner_of(self, tool_name: str) -> Vendor | None:
        """Return the vendor that a tool's exposed name belongs to: the one with the longest prefix that begins it.

        Whether that vendor can be asked now, or has such a tool, changes nothing. Spec: D111, D164
        """
        end = tool_name.rfind("_", 0, SLUG_MAX_CHARACTERS + 1)
        while end > 0:
            vendor = self._by_prefix.get(tool_name[:end])
            if vendor is not None:
                return vendor
            end = tool_name.rfind("_", 0, end)
        return None

    def longer_prefixes(self, vendor: Vendor) -> tuple[str, ...]:
        """Return the beginnings of names that look like this vendor's and belong to others, sorted. Spec: D164"""
        return self._longer.get(vendor.tool_prefix, ())

    def overlaps(self) -> list[tuple[Vendor, Vendor]]:
        """Return every pair of vendors where the prefix of the second begins with that of the first, in order."""
        pairs = [
            (self._by_prefix[prefix], self._by_prefix[longer.removesuffix("_")])
            for prefix, found in self._longer.items()
            for longer in found
        ]
        return sorted(pairs, key=lambda pair: (pair[0].tool_prefix, pair[1].tool_prefix))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Catalog) and self._by_name == other._by_name

    def __hash__(self) -> int:
        return hash(tuple(self.by_slug))

    def __iter__(self) -> Iterator[Vendor]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    def __contains__(self, slug: object) -> bool:
        return slug in self.by_slug


def _longer_prefixes(prefixes: Collection[str]) -> dict[str, tuple[str, ...]]:
    """For each prefix that others begin with, those others with their underscore."""
    found: dict[str, tuple[str, ...]] = {}
    for longer in sorted(prefixes):
        end = longer.rfind("_")
        while end > 0:
            if longer[:end] in prefixes:
                found[longer[:end]] = (*found.get(longer[:end], ()), f"{longer}_")
            end = longer.rfind("_", 0, end)
    return found


def load() -> Catalog:
    """Return the catalog as the database has it now."""
    rows = VendorRow.objects.values_list("slug", "definition")
    return Catalog(vendor for slug, definition in rows if (vendor := _vendor(slug, definition)) is not None)


def vendor_or_none(slug: str) -> Vendor | None:
    """Return one vendor as the database has it now."""
    definition = VendorRow.objects.filter(slug=slug).values_list("definition", flat=True).first()
    return None if definition is None else _vendor(slug, definition)


def known_vendor(slug: str) -> Vendor:
    """The vendor that a path names.

    Raises: NotFound.   Spec: D64
    """
    vendor = vendor_or_none(slug)
    if vendor is None:
        raise NotFound
    return vendor


def _vendor(slug: str, definition: Mapping[str, object]) -> Vendor | None:
    try:
        return vendor_from_json(definition)
    except ValueError:
        # A row that another release wrote must not take every other vendor down with it: this one is missing.
        logger.exception("the catalog row of vendor %s cannot be read; load the catalog again", slug)
        return None
