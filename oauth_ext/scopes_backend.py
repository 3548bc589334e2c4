"""The scopes as the library asks for them: two for everything, one for each vendor of the catalog."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from oauth2_provider.scopes import BaseScopes

from gateway.catalog.models import VendorRow
from oauth_ext import scopes


class VendorScopes(BaseScopes):
    """Any client may ask for any scope: a scope only narrows what its subject may use. Spec: D136"""

    def get_all_scopes(self) -> dict[str, str]:
        """Every scope with a description. All of them: the library looks each one up without asking first."""
        rows = VendorRow.objects.values_list("slug", "definition__name")
        named = {scopes.for_vendor(slug): f"Use the tools of {name or slug}" for slug, name in rows}
        return {scopes.ANY: "Use the tools of every vendor", scopes.ALL: "Use the tools of every vendor", **named}

    def get_available_scopes(
        self, application: Any = None, request: Any = None, *args: Any, **kwargs: Any
    ) -> list[str]:
        """See the library: the same for every client."""
        return list(self.get_all_scopes())

    def get_default_scopes(self, application: Any = None, request: Any = None, *args: Any, **kwargs: Any) -> list[str]:
        """What a request without a scope asks for. Spec: D122"""
        return [scopes.ALL]


def existing(wanted: Iterable[str]) -> list[str]:
    """Those that are ours and whose vendor, if they name one, is in the catalog; each once, in the order given.

    No query where none names a vendor.
    """
    ours = [name for name in dict.fromkeys(wanted) if scopes.registered(name)]
    vendors = {vendor for name in ours if (vendor := scopes.vendor_of(name)) is not None}
    known = set(VendorRow.objects.filter(slug__in=vendors).values_list("slug", flat=True)) if vendors else set()
    return [name for name in ours if name in scopes.EVERYTHING or scopes.vendor_of(name) in known]


def vendor_names(wanted: Iterable[str]) -> list[str]:
    """The names of the vendors that scopes narrow to, sorted; none where they do not narrow."""
    return sorted(names_by_scope(wanted).values())


def names_by_scope(wanted: Iterable[str]) -> dict[str, str]:
    """Scope to the name of the vendor it narrows to, in one query for all of them; the others are absent."""
    slugs = {vendor: name for name in wanted if (vendor := scopes.vendor_of(name)) is not None}
    rows = VendorRow.objects.filter(slug__in=slugs).values_list("slug", "definition__name") if slugs else []
    return {slugs[slug]: name or slug for slug, name in rows}


def all_exist(wanted: Iterable[str]) -> bool:
    """Whether every scope is ours and its vendor, if it names one, is in the catalog."""
    names = list(dict.fromkeys(wanted))
    return all(map(scopes.registered, names)) and existing(names) == names
