"""Queries of clients and their authorizations, each within one organization."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable
from datetime import timedelta

from django.conf import settings
from django.db.models import F, QuerySet

from gateway.lib import clock, ids
from gateway.lib.errors import NotFound
from gateway.lib.rows import required_row
from oauth_ext.models import AccessToken, Client, ServiceClientVendor, TokenFamily
from orgs.models import Organization, User

_CLIENT_ID = re.compile(r"svc_[0-9A-Za-z_-]{1,250}")


def service_clients(organization: Organization) -> QuerySet[Client]:
    """Newest first, expired ones included. Spec: §4.8 · D71, D73"""
    rows: QuerySet[Client] = Client.objects.filter(organization=organization).order_by("-created", "id")
    # Both annotations are None without a key.
    key = {"agent_key_prefix": F("agent_key__prefix"), "agent_key_last_used_at": F("agent_key__last_used_at")}
    annotated: QuerySet[Client] = rows.annotate(**key)
    return annotated


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
    return rows.select_related("client", "user", "approved_by").order_by("-last_used_at", "id")


def live_access_tokens(organization: Organization, *, of: User) -> QuerySet[AccessToken]:
    return AccessToken.objects.filter(organization=organization, user=of, expires__gt=clock.now())


def service_client_of_any_organization(client_id: str) -> Client:
    """For operators on the command line only. Raises: NotFound."""
    return required_row(Client.objects.filter(client_id=client_id, organization__isnull=False))


def restricted_vendors(client_pk: uuid.UUID) -> frozenset[str] | None:
    """Returns the vendors of a restricted service client; None for an unrestricted one. Spec: D34, D173"""
    rows = list(Client.objects.filter(pk=client_pk).values_list("restricted", "restricted_vendors__vendor"))
    # Fails closed: a missing client counts as restricted.
    return allowed_vendors(not rows or rows[0][0], [vendor for _, vendor in rows if vendor is not None])


def allowed_vendors(restricted: bool, listed: Iterable[str]) -> frozenset[str] | None:
    """None for every vendor."""
    # Fails closed: a list without the flag counts as restricted.
    vendors = frozenset(listed)
    return None if not restricted and not vendors else vendors


def service_client_vendor_rows(organization: Organization) -> QuerySet[ServiceClientVendor]:
    """Lists the grants of all service clients of the organization, oldest first. Spec: §4.5 · D34"""
    rows = ServiceClientVendor.objects.select_related("client").filter(client__organization=organization)
    return rows.order_by("granted_at", "id")
