"""Queries of clients and their authorizations, each within one organization."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import F, FilteredRelation, Q, QuerySet

from audit.event_types import EventType
from audit.models import AdminAuditEntry
from gateway.lib import clock, ids
from gateway.lib.errors import NotFound
from gateway.lib.rows import required_row
from oauth_ext.models import (
    AccessToken,
    Client,
    ServiceClientAllowlist,
    ServiceClientItemAllowlist,
    ServiceClientVendor,
    TokenFamily,
)
from oauth_ext.models.client import ToolMode
from orgs.allowed_items import AllowedItems, OwnItemLists
from orgs.models import ManagementToken, Organization, User
from orgs.selectors import MAX_SEARCH_WORDS

# The changes whose answer has a key or a secret.
_SHOWING = (
    EventType.SERVICE_CLIENT_CREATED,
    EventType.SERVICE_CLIENT_SECRET_ROTATED,
    EventType.AGENT_KEY_CREATED,
    EventType.AGENT_KEY_ROTATED,
)
MOST_SHOWN = 10_000  # rows of the log
_CLIENT_ID = re.compile(r"svc_[0-9A-Za-z_-]{1,250}")


def service_clients(organization: Organization, *, matching: str = "", named: str | None = None) -> QuerySet[Client]:
    """Newest first, expired ones included; with `matching` those whose name has its words. Spec: §4.8 · D71, D73"""
    rows: QuerySet[Client] = Client.objects.filter(organization=organization).order_by("-created", "id")
    if named is not None:
        rows = rows.filter(name=named)
    for word in matching.split():
        rows = rows.filter(name__icontains=word)
    # The annotations are None without a key.
    current = FilteredRelation("agent_keys", condition=Q(agent_keys__ends_at=None))
    previous = FilteredRelation("agent_keys", condition=Q(agent_keys__ends_at__gt=clock.now()))
    annotated: QuerySet[Client] = rows.annotate(key=current, previous_key=previous).annotate(
        agent_key_prefix=F("key__prefix"),
        agent_key_created_at=F("key__created_at"),
        agent_key_last_used_at=F("key__last_used_at"),
        previous_key_prefix=F("previous_key__prefix"),
        previous_key_ends_at=F("previous_key__ends_at"),
        previous_key_last_used_at=F("previous_key__last_used_at"),
    )
    return annotated.select_related("created_by", "responsible__user")


def service_clients_named(organization: Organization, words: str) -> QuerySet[Client]:
    """By name; each of the `words` is in the name or in the `svc_` name. Expired ones are included."""
    found = Q(organization=organization)
    for word in words.split()[:MAX_SEARCH_WORDS]:
        found &= Q(name__icontains=word) | Q(client_id__icontains=word)
    return Client.objects.filter(found).order_by("name", "id")


def service_client(organization: Organization, id_or_client_id: str) -> Client:
    """Finds by id or `svc_` name. Raises: NotFound, also for another organization's client. Spec: D4, D71"""
    found = None
    key = ids.parse_id(id_or_client_id)
    if key is not None:
        found = service_clients(organization).filter(pk=key).first()
    elif _CLIENT_ID.fullmatch(id_or_client_id):
        found = service_clients(organization).filter(client_id=id_or_client_id).first()
    if found is None:
        raise NotFound
    return found


def acting_clients(organization: Organization) -> QuerySet[Client]:
    """The service clients that may act for people and have not expired, by name."""
    rows = Client.objects.filter(organization=organization, acts_for_people=True, expires_at__gt=clock.now())
    return rows.order_by("name", "id")


def service_client_names(organization: Organization) -> list[str]:
    """Of those that have not expired, sorted."""
    rows = Client.objects.filter(organization=organization, expires_at__gt=clock.now())
    return sorted(rows.values_list("name", flat=True), key=str.casefold)


def public_client(client_id: str) -> Client | None:
    """Returns an unexpired public client, the only kind that may ask people for consent."""
    found = Client.objects.filter(client_id=client_id, organization=None, client_type=Client.CLIENT_PUBLIC).first()
    return None if found is None or found.is_expired() else found


def connected_apps(organization: Organization, *, of: User | None = None) -> QuerySet[TokenFamily]:
    """The live authorizations of apps and devices, last used first; `of` one person only."""
    now = clock.now()
    idle_since = now - timedelta(days=settings.REFRESH_IDLE_DAYS)
    rows = TokenFamily.objects.filter(organization=organization, expires_at__gt=now, last_used_at__gt=idle_since)
    if of is not None:
        rows = rows.filter(user=of)
    rows = rows.select_related("client", "user", "approved_by", "trusted_issuer")
    return rows.order_by("-last_used_at", "id")


def live_access_tokens(organization: Organization, *, of: User) -> QuerySet[AccessToken]:
    return AccessToken.objects.filter(organization=organization, user=of, expires__gt=clock.now())


def clients_shown_to(organization: Organization, person: User, *, token: ManagementToken | None = None) -> list[Client]:
    """The service clients whose key or secret the person was shown, by name; with `token`, a script of that token.

    Keys and secrets are the organization's and work on without the person, who may have a copy.
    """
    rows = AdminAuditEntry.objects.filter(
        org_id=organization.pk, actor_id=str(person.pk), event_type__in=[event.value for event in _SHOWING]
    )
    if token is not None:
        rows = rows.filter(actor_label__endswith=f", {token.prefix})", id__gte=ids.first_log_id_at(token.created_at))
    names = {metadata.get("client_id") for metadata in rows.values_list("metadata", flat=True)[:MOST_SHOWN]}
    return list(Client.objects.filter(organization=organization, client_id__in=names - {None}).order_by("name", "id"))


def service_client_of_any_organization(client_id: str) -> Client:
    """For operators on the command line only. Raises: NotFound."""
    return required_row(Client.objects.filter(client_id=client_id, organization__isnull=False))


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """The limits of a service client beside its role. `vendors` None: every vendor; `tools`: by vendor, its lists.

    `lists_compactly`: whether the unified endpoint lists three tools in place of all to it.
    """

    vendors: frozenset[str] | None
    tools: Mapping[str, frozenset[str]]
    is_read_only: bool
    items: OwnItemLists = field(default_factory=dict)
    lists_compactly: bool = False


NOTHING_ALLOWED = ClientLimits(vendors=frozenset(), tools={}, is_read_only=True)


def client_limits(client_pk: uuid.UUID) -> ClientLimits:
    """Spec: D34, D165, D173"""
    row = Client.objects.filter(pk=client_pk).values_list("tool_mode", "lists_compactly").first()
    mode, lists_compactly = row or (None, False)
    items = ServiceClientItemAllowlist.objects.filter(client_id=client_pk).values_list("vendor", "kind", "entries")
    lists = ServiceClientAllowlist.objects.filter(client_id=client_pk).values_list("vendor", "tools")
    return ClientLimits(
        vendors=restricted_vendors(client_pk),
        tools={vendor: frozenset(tools) for vendor, tools in lists},
        # Fails closed: a missing client writes nothing.
        is_read_only=mode != ToolMode.ALL,
        items={(vendor, kind): AllowedItems.of(kind, entries) for vendor, kind, entries in items},
        lists_compactly=lists_compactly,
    )


def restricted_vendors(client_pk: uuid.UUID) -> frozenset[str] | None:
    """Returns the vendors of a restricted service client; None for an unrestricted one. Spec: D34, D173"""
    # Fails closed: a missing client and a list without the flag, even one that ended, count as restricted.
    rows = ServiceClientVendor.objects.filter(client=client_pk)
    if Client.objects.filter(pk=client_pk, restricted=False).exists() and not rows.exists():
        return None
    return frozenset(rows.in_force(clock.now()).values_list("vendor", flat=True))


def client_allowlists(client: Client, vendor: str | None = None) -> QuerySet[ServiceClientAllowlist]:
    """By vendor; of one vendor if it is named. Spec: D75, D165"""
    rows = ServiceClientAllowlist.objects.select_related("updated_by").filter(client=client)
    return (rows if vendor is None else rows.filter(vendor=vendor)).order_by("vendor")


def client_item_lists(client: Client, vendor: str) -> QuerySet[ServiceClientItemAllowlist]:
    """By type. docs/decisions/0115"""
    rows = ServiceClientItemAllowlist.objects.select_related("updated_by").filter(client=client, vendor=vendor)
    return rows.order_by("kind")


def service_client_vendor_rows(organization: Organization) -> QuerySet[ServiceClientVendor]:
    """The vendors in force of all restricted service clients of the organization, oldest first. Spec: §4.5 · D34"""
    rows = ServiceClientVendor.objects.select_related("client").filter(client__organization=organization)
    rows = rows.in_force(clock.now())
    return rows.order_by("granted_at", "id")


def ending_service_clients(organization: Organization, before: datetime) -> list[Client]:
    """Those that expire before then, and those with a former key that still counts; the first to end first."""
    ending = Q(expires_at__gt=clock.now(), expires_at__lte=before) | Q(previous_key__isnull=False)
    rows: QuerySet[Client] = service_clients(organization).filter(ending).order_by("expires_at", "id")
    return list(rows)
