"""Lists of a vendor's resources and prompts for one service client: set and clear. docs/decisions/0115"""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction

from audit.event_types import EventType
from gateway.catalog.registry import known_vendor
from gateway.lib import clock
from gateway.lib.rows import required_row
from oauth_ext.models import Client, ServiceClientItemAllowlist
from oauth_ext.services.service_clients import record_client_change
from orgs.allowed_items import ItemType
from orgs.errors import AllowlistChanged
from orgs.locking import lock_for_change
from orgs.models import Organization, User
from orgs.roles import Role
from orgs.services.item_access import checked_entries, item_type_named


@transaction.atomic
def set_client_item_list(
    *,
    actor: User,
    organization: Organization,
    client: Client,
    vendor: str,
    kind: str,
    entries: Sequence[str],
    seen_version: str | None = None,
) -> ServiceClientItemAllowlist:
    """As `orgs.services.item_access.set_item_list`, for a service client.

    Raises: NotFound for an unknown vendor or type, or a deleted client; Invalid; Forbidden; AllowlistChanged.
    """
    known_type = item_type_named(kind)
    found = _begin(organization, actor, client)
    known_vendor(vendor)
    names = checked_entries(known_type, entries)
    _require_unchanged(found, vendor, known_type, seen_version)
    row, _ = ServiceClientItemAllowlist.objects.update_or_create(
        client=found,
        vendor=vendor,
        kind=known_type.value,
        defaults={"entries": names, "updated_by": actor, "updated_at": clock.now()},
    )
    facts = {"vendor": vendor, "kind": known_type.value, "entries": names}
    record_client_change(EventType.ITEM_ACCESS_UPDATED, organization.id, actor, found, **facts)
    return row


@transaction.atomic
def clear_client_item_list(
    *,
    actor: User,
    organization: Organization,
    client: Client,
    vendor: str,
    kind: str,
    seen_version: str | None = None,
) -> None:
    """Idempotent. Raises: as `set_client_item_list`. Spec: D9"""
    known_type = item_type_named(kind)
    found = _begin(organization, actor, client)
    _require_unchanged(found, vendor, known_type, seen_version)
    rows = ServiceClientItemAllowlist.objects.filter(client=found, vendor=vendor, kind=known_type.value)
    deleted, _ = rows.delete()
    if not deleted:
        known_vendor(vendor)
        return
    facts = {"vendor": vendor, "kind": known_type.value}
    record_client_change(EventType.ITEM_ACCESS_CLEARED, organization.id, actor, found, **facts)


def _begin(organization: Organization, actor: User, client: Client) -> Client:
    # The role that changes the lists of roles.
    lock_for_change(organization, actor=actor, role=Role.OWNER)
    return required_row(Client.objects.filter(pk=client.pk, organization=organization))


def _require_unchanged(client: Client, vendor: str, kind: ItemType, seen_version: str | None) -> None:
    if seen_version is None:
        return
    rows = ServiceClientItemAllowlist.objects.filter(client=client, vendor=vendor, kind=kind.value)
    row = rows.select_related("updated_by").first()
    if (row.version if row else "") != seen_version:
        raise AllowlistChanged(row.updated_by.name if row and row.updated_by else "")
