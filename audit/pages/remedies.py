"""The reason for a refused call in words, and the page that changes it. Spec: D33, D77, D105"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from audit.models import REJECTED, RequestAuditEntry
from gateway.catalog import registry


@dataclass(frozen=True, slots=True)
class Remedy:
    text: str
    label: str
    url: str


# By error code: the sentence, the link's text and its route.
_OF_ORGANIZATION = {
    "no_server_access": ("The caller had no access to this vendor.", "Server access", "orgs:server-access"),
    "unknown_vendor": ("There is no vendor of this name.", "Connections", "credentials:connections"),
    "insufficient_scope": (
        "The app's token does not cover this vendor. The app has to ask for it.",
        "Connected apps",
        "oauth_pages:apps",
    ),
}
_OF_VENDOR = {
    "tool_not_allowed": (
        "The tool is not on the allowlist of the caller's role. An owner can add it.",
        "Tool access",
        "proxy_pages:tool-access",
    ),
    "unknown_tool": (
        "The caller sees no tool of this name: it is not offered, or not on the allowlist of the caller's role.",
        "Tool access",
        "proxy_pages:tool-access",
    ),
    "no_credentials": ("The vendor was not connected for this caller.", "Connection", "credentials:connection"),
    "unusable_credentials": ("The stored credentials could not be used.", "Connection", "credentials:connection"),
    REJECTED: ("The vendor rejected the stored credentials.", "Connection", "credentials:connection"),
}


def remedy_of(entry: RequestAuditEntry, organization_id: uuid.UUID) -> Remedy | None:
    """None for a call that was not refused, and where no page changes the reason."""
    if entry.error_code in _OF_ORGANIZATION:
        text, label, route = _OF_ORGANIZATION[entry.error_code]
        return Remedy(text, label, _address(route, entry, organization_id))
    if entry.error_code in _OF_VENDOR:
        text, label, route = _OF_VENDOR[entry.error_code]
        vendor = registry.vendor_or_none(entry.vendor)
        # The pages of a vendor that has left the catalog are gone.
        if vendor is not None:
            return Remedy(text, f"{label} of {vendor.name}", reverse(route, args=[organization_id, vendor.slug]))
    return None


def _address(route: str, entry: RequestAuditEntry, organization_id: uuid.UUID) -> str:
    address = reverse(route, args=[organization_id])
    return f"{address}?{urlencode({'q': entry.user_label})}" if route == "orgs:server-access" else address
