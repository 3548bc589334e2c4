"""Changes of an organization in words, with links to what was changed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.urls import reverse
from django.utils.translation import gettext

from audit.actor import ANYONE, INVITATION_FOR
from audit.change_words import parts_of
from audit.event_types import EventType
from audit.models import AdminAuditEntry
from gateway.catalog.catalog import Catalog
from gateway.lib import ids
from gateway.lib.translated import translated

INVITATIONS = {
    EventType.INVITATION_CREATED,
    EventType.INVITATION_SENT,
    EventType.INVITATION_ACCEPTED,
    EventType.INVITATION_REVOKED,
}


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a sentence; `url` is "" where it leads nowhere."""

    text: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    entry: AdminAuditEntry
    parts: tuple[Part, ...]


def in_words(entries: Iterable[AdminAuditEntry], catalog: Catalog) -> list[Change]:
    return [Change(entry, tuple(_parts(entry, catalog))) for entry in entries]


def _parts(entry: AdminAuditEntry, catalog: Catalog) -> Iterable[Part]:
    for text, name in parts_of(entry.event_type, translated):
        if text:
            yield Part(text)
        if name == "vendor":
            yield _vendor(entry, catalog)
        elif name:
            yield Part(_label(entry), _link(name, entry))


def _label(entry: AdminAuditEntry) -> str:
    # The label of an invitation is words of ours, and an address.
    if entry.event_type in INVITATIONS and entry.target_label.startswith(INVITATION_FOR):
        bound_to = entry.target_label.removeprefix(INVITATION_FOR)
        if bound_to == ANYONE:
            return gettext("invitation for anyone with the link")
        return gettext("invitation for %(email)s") % {"email": bound_to}
    return entry.target_label or gettext("it")


def _vendor(entry: AdminAuditEntry, catalog: Catalog) -> Part:
    # Events of a vendor itself have it as their target.
    slug = str(entry.metadata.get("vendor") or entry.target_id)
    vendor = catalog.get(slug)
    if vendor is None:
        return Part(slug)
    return Part(vendor.name, reverse("proxy_pages:vendor", args=[entry.org_id, slug]))


def _link(name: str, entry: AdminAuditEntry) -> str:
    target: UUID | None = ids.parse_id(entry.target_id)
    routes: dict[str, Any] = {
        "person": "orgs:person",
        "agent": "oauth_pages:service-client",
        "team": "orgs:team",
        "destination": "audit_pages:log-destination",
    }
    return reverse(routes[name], args=[entry.org_id, target]) if name in routes and target else ""
