"""The reason for a refused call in words, and the page that changes it. Spec: D33, D77, D105"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.translation import gettext_lazy

from audit.models import REJECTED, RequestAuditEntry
from gateway.catalog.catalog import Catalog


@dataclass(frozen=True, slots=True)
class Remedy:
    text: str
    label: str
    url: str
    # Whether every member can open the page.
    is_for_members: bool = False


# By error code: the sentence, the link's text and its route.
_OF_ORGANIZATION = {
    "no_server_access": (
        gettext_lazy("The caller didn’t have access to this vendor."),
        gettext_lazy("Vendor access"),
        "orgs:server-access",
    ),
    "unknown_vendor": (gettext_lazy("No vendor has this name."), gettext_lazy("Vendors"), "proxy_pages:vendors"),
    "insufficient_scope": (
        gettext_lazy("The app’s token doesn’t cover this vendor. The app has to ask for it."),
        gettext_lazy("Connected apps"),
        "oauth_pages:apps",
    ),
}
_FOR_MEMBERS = {"proxy_pages:vendors", "oauth_pages:apps"}
_OF_VENDOR = {
    "tool_not_allowed": (
        gettext_lazy("The caller’s role isn’t allowed to call this tool. An owner can allow it."),
        gettext_lazy("%(vendor)s tools"),
        "proxy_pages:tool-access",
    ),
    "item_not_allowed": (
        gettext_lazy(
            "The caller’s lists at this vendor don’t allow this resource or prompt, or a list of allowed tools closes"
            " all of them. An owner can change that."
        ),
        gettext_lazy("%(vendor)s resources and prompts"),
        "proxy_pages:vendor-items",
    ),
    "unknown_tool": (
        gettext_lazy(
            "The caller has no tool with this name: the vendor doesn’t offer it, or it isn’t allowed for the caller."
        ),
        gettext_lazy("%(vendor)s tools"),
        "proxy_pages:tool-access",
    ),
    "no_credentials": (
        gettext_lazy("The vendor wasn’t connected for this caller."),
        gettext_lazy("%(vendor)s credentials"),
        "credentials:connection",
    ),
    "vendor_scope_needed": (
        gettext_lazy("The connection lacks scopes that the vendor asked for."),
        gettext_lazy("%(vendor)s credentials"),
        "credentials:connection",
    ),
    "unusable_credentials": (
        gettext_lazy("The stored credentials couldn’t be used."),
        gettext_lazy("%(vendor)s credentials"),
        "credentials:connection",
    ),
    REJECTED: (
        gettext_lazy("The vendor rejected the stored credentials."),
        gettext_lazy("%(vendor)s credentials"),
        "credentials:connection",
    ),
}


def remedy_of(entry: RequestAuditEntry, organization_id: uuid.UUID, catalog: Catalog) -> Remedy | None:
    """None for a call that was not refused, and where no page changes the reason."""
    if entry.error_code in _OF_ORGANIZATION:
        text, label, route = _OF_ORGANIZATION[entry.error_code]
        is_for_members = route in _FOR_MEMBERS
        return Remedy(str(text), str(label), _address(route, entry, organization_id), is_for_members=is_for_members)
    if entry.error_code in _OF_VENDOR:
        text, label, route = _OF_VENDOR[entry.error_code]
        vendor = catalog.get(entry.vendor)
        # The pages of a vendor that has left the catalog are gone.
        if vendor is not None:
            return Remedy(
                str(text), str(label) % {"vendor": vendor.name}, reverse(route, args=[organization_id, vendor.slug])
            )
    return None


def _address(route: str, entry: RequestAuditEntry, organization_id: uuid.UUID) -> str:
    address = reverse(route, args=[organization_id])
    return f"{address}?{urlencode({'q': entry.user_label})}" if route == "orgs:server-access" else address
