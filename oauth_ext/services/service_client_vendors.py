"""The vendor list of a service client; an unrestricted client may use every connected vendor. Spec: D34, D173"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db import transaction

from audit.admin_log import record_admin
from audit.event_types import EventType
from gateway.catalog.registry import known_vendor
from gateway.lib import clock
from gateway.lib.rows import required_row
from oauth_ext.models import Client, ServiceClientVendor
from oauth_ext.services.token_families import bump_clients
from orgs.locking import lock_for_change
from orgs.models import Organization, User
from orgs.roles import Role
from orgs.services.server_access import require_vendors
from orgs.services.server_access_ends import checked_end, remove_ended


@transaction.atomic
def add_client_vendor(
    *, actor: User, organization: Organization, client: Client, vendor: str, expires_at: datetime | None = None
) -> ServiceClientVendor:
    """Until `expires_at`, or without an end; a vendor on the list gets this end. Spec: D59, D173

    Raises: NotFound for an unknown vendor or a deleted client; Forbidden; Invalid for an end that has passed.
    """
    found = _begin(organization, actor, client)
    known_vendor(vendor)
    end = checked_end(expires_at, clock.now())
    row, created = ServiceClientVendor.objects.get_or_create(
        client=client, vendor=vendor, defaults={"granted_by": actor, "expires_at": end}
    )
    facts: dict[str, object] = {"vendor": vendor}
    if row.expires_at is not None or end is not None:
        facts["expiresAt"] = None if end is None else clock.rfc3339(end)
    has_new_end = row.expires_at != end
    if has_new_end:
        row.expires_at, row.granted_by = end, actor
        row.save(update_fields=["expires_at", "granted_by"])
    # The first vendor restricts the client to its list.
    restricts = _set_restricted(found, True)
    if created or restricts or has_new_end:
        _record(EventType.SERVER_ACCESS_GRANTED, actor, organization, client, restricts=restricts, **facts)
    return row


@transaction.atomic
def remove_client_vendor(*, actor: User, organization: Organization, client: Client, vendor: str) -> None:
    """Raises: NotFound for an unknown vendor or a deleted client; Forbidden. Spec: D9, D173"""
    found = _begin(organization, actor, client)
    # Without its last vendor the client stays restricted, and may use none.
    deleted, _ = ServiceClientVendor.objects.filter(client=client, vendor=vendor).delete()
    if not deleted:
        known_vendor(vendor)
        return
    _set_restricted(found, True)
    _record(EventType.SERVER_ACCESS_REVOKED, actor, organization, client, vendor=vendor)


@transaction.atomic
def replace_client_vendors(
    *, actor: User, organization: Organization, client: Client, vendors: Sequence[str] | None
) -> list[str] | None:
    """Returns the sorted list; None lifts the restriction. Raises: Invalid, NotFound, Forbidden. Spec: D59, D173"""
    found = _begin(organization, actor, client)
    # An unknown vendor raises here, before any change.
    wanted = None if vendors is None else require_vendors(vendors)
    rows = ServiceClientVendor.objects.filter(client=client)
    listed = sorted(rows.values_list("vendor", flat=True))
    were = listed if found.restricted else None
    rows.exclude(vendor__in=wanted or []).delete()
    ServiceClientVendor.objects.bulk_create(
        ServiceClientVendor(client=client, vendor=vendor, granted_by=actor)
        for vendor in wanted or []
        if vendor not in listed
    )
    _set_restricted(found, wanted is not None)
    if were != wanted:
        _record(EventType.SERVER_ACCESS_REPLACED, actor, organization, client, vendors=wanted, were=were)
    return wanted


@transaction.atomic
def restrict_client(*, actor: User, organization: Organization, client: Client, vendors: Sequence[str]) -> bool:
    """Restrict an unrestricted client to `vendors`. False: it is restricted, and its list stays.

    Raises: Invalid, NotFound, Forbidden. Spec: D173
    """
    if _begin(organization, actor, client).restricted:
        return False
    replace_client_vendors(actor=actor, organization=organization, client=client, vendors=vendors)
    return True


def _set_restricted(client: Client, restricted: bool) -> bool:
    if client.restricted is restricted:
        return False
    client.restricted = restricted
    client.save(update_fields=["restricted"])
    return True


def _begin(organization: Organization, actor: User, client: Client) -> Client:
    # Every change of a list takes the organization's lock first.
    lock_for_change(organization, actor=actor, role=Role.ADMIN)
    found = required_row(Client.objects.filter(pk=client.pk, organization=organization))
    # A row that has ended is no access that could be taken, or given again.
    remove_ended(ServiceClientVendor.objects.select_related("client").filter(client=found), organization.id)
    return found


def _record(event: EventType, actor: User, organization: Organization, client: Client, **facts: object) -> None:
    record_admin(event, org_id=organization.id, actor=actor.as_actor(), target=client.as_target(), metadata=facts)
    bump_clients(client)
