"""Pure: the vendors of one moment, found by slug, by prefix and by tool name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType

from gateway.catalog.vendor import SLUG_MAX_CHARACTERS, Vendor


class Catalog:
    """All vendors at one moment, immutable. Spec: D111"""

    __slots__ = ("_by_name", "_by_prefix", "_longer", "by_slug")

    by_slug: Mapping[str, Vendor]

    def __init__(self, vendors: Iterable[Vendor]) -> None:
        self._by_name = tuple(sorted(vendors, key=lambda vendor: (vendor.name.casefold(), vendor.slug)))
        self.by_slug = MappingProxyType({vendor.slug: vendor for vendor in self._by_name})
        self._by_prefix = {vendor.tool_prefix: vendor for vendor in self._by_name}
        self._longer = _longer_prefixes(self._by_prefix)

    def all(self) -> tuple[Vendor, ...]:
        """All vendors, sorted by name without regard to case."""
        return self._by_name

    def get(self, slug: str) -> Vendor | None:
        return self.by_slug.get(slug)

    def names_of(self, slugs: Iterable[str]) -> list[str]:
        """Display names in the order of the slugs. A vendor that has left the catalog keeps its slug."""
        return [vendor.name if (vendor := self.get(slug)) else slug for slug in slugs]

    def name_of(self, slug: str) -> str:
        return self.names_of([slug])[0]

    def meant(self, typed: str) -> Vendor | None:
        """The vendor with this slug, or the only one with this name; None otherwise."""
        named = [vendor for vendor in self._by_name if vendor.name.casefold() == typed.strip().casefold()]
        return self.get(typed) or (named[0] if len(named) == 1 else None)

    def owner_of(self, tool_name: str) -> Vendor | None:
        """The vendor with the longest prefix of an exposed tool name. Spec: D111, D164"""
        # From the longest possible prefix down. Health and tool lists play no part, so a name always has the same
        # owner.
        end = tool_name.rfind("_", 0, SLUG_MAX_CHARACTERS + 1)
        while end > 0:
            vendor = self._by_prefix.get(tool_name[:end])
            if vendor is not None:
                return vendor
            end = tool_name.rfind("_", 0, end)
        return None

    def longer_prefixes(self, vendor: Vendor) -> tuple[str, ...]:
        """Other vendors' prefixes that begin with this vendor's, each with its underscore, sorted. Spec: D164"""
        return self._longer.get(vendor.tool_prefix, ())

    def overlaps(self) -> list[tuple[Vendor, Vendor]]:
        """Sorted pairs of vendors where the second prefix begins with the first."""
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
    """Each prefix with the longer prefixes that begin with it."""
    found: dict[str, tuple[str, ...]] = {}
    for longer in sorted(prefixes):
        end = longer.rfind("_")
        while end > 0:
            if longer[:end] in prefixes:
                found[longer[:end]] = (*found.get(longer[:end], ()), f"{longer}_")
            end = longer.rfind("_", 0, end)
    return found
