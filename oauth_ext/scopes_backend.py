"""The scopes for oauthlib, and look-ups of scopes in the vendor catalog."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from oauth2_provider.scopes import BaseScopes

from gateway.catalog.models import VendorRow
from oauth_ext import scopes


class VendorScopes(BaseScopes):
    """Any client may ask for any scope: a scope only narrows its subject's permissions. Spec: D136"""

    def get_all_scopes(self) -> dict[str, str]:
        """Maps every scope to a description."""
        # All vendors: the library looks scopes up here without a check of its own.
        rows = VendorRow.objects.values_list("slug", "definition__name")
        named = {scopes.for_vendor(slug): f"Use the tools of {name or slug}" for slug, name in rows}
        return {scopes.ANY: "Use the tools of every vendor", scopes.ALL: "Use the tools of every vendor", **named}

    def get_available_scopes(
        self, application: Any = None, request: Any = None, *args: Any, **kwargs: Any
    ) -> list[str]:
        return list(self.get_all_scopes())

    def get_default_scopes(self, application: Any = None, request: Any = None, *args: Any, **kwargs: Any) -> list[str]:
        """Spec: D122"""
        return [scopes.ALL]


def existing(wanted: Iterable[str]) -> list[str]:
    """Keeps the scopes that exist, without duplicates, in order; no query where none names a vendor."""
    ours = [name for name in dict.fromkeys(wanted) if scopes.registered(name)]
    vendors = {vendor for name in ours if (vendor := scopes.vendor_of(name)) is not None}
    known = set(VendorRow.objects.filter(slug__in=vendors).values_list("slug", flat=True)) if vendors else set()
    return [name for name in ours if name in scopes.EVERYTHING or scopes.vendor_of(name) in known]


def vendor_names(wanted: Iterable[str]) -> list[str]:
    """Returns the sorted names of the vendors that the scopes name."""
    return sorted(names_by_scope(wanted).values())


def names_by_scope(wanted: Iterable[str]) -> dict[str, str]:
    """Maps each vendor scope to its vendor's name, in one query; other scopes are absent."""
    slugs = {vendor: name for name in wanted if (vendor := scopes.vendor_of(name)) is not None}
    rows = VendorRow.objects.filter(slug__in=slugs).values_list("slug", "definition__name") if slugs else []
    return {slugs[slug]: name or slug for slug, name in rows}


def all_exist(wanted: Iterable[str]) -> bool:
    names = list(dict.fromkeys(wanted))
    return all(map(scopes.registered, names)) and existing(names) == names
