"""Changes of many service clients' vendors at once, as the matrix page saves them: all of them or none."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction

from audit.admin_log import AdminEvent, record_admin_rows
from audit.event_types import EventType
from gateway.catalog.registry import known_vendor
from gateway.lib import clock
from oauth_ext.models import Client, ServiceClientVendor
from oauth_ext.services.token_families import bump_clients
from orgs.locking import lock_for_change
from orgs.models import Organization, User
from orgs.roles import Role
from orgs.services.server_access_ends import checked_end, remove_ended

ClientVendor = tuple[UUID, str]  # the primary key of a service client, and a vendor's slug


@dataclass(frozen=True, slots=True)
class ClientChangeCounts:
    """Numbers: rows given and taken, clients that are gone, clients left as they are because they are unrestricted.

    `ends_lost`: taken rows with an end, which giving them back would not restore.
    """

    added: int
    removed: int
    gone: int
    unrestricted: int
    ends_lost: int


@transaction.atomic
def change_client_vendors(
    *,
    actor: User,
    organization: Organization,
    added: set[ClientVendor],
    removed: set[ClientVendor],
    expires_at: datetime | None = None,
) -> ClientChangeCounts:
    """Other rows stay, and so does an unrestricted client: its first vendor would take every other one away.

    Raises: NotFound for an unknown vendor; Forbidden; Invalid for an end that has passed. Spec: D34, D173
    """
    end = checked_end(expires_at, clock.now())
    lock_for_change(organization, actor=actor, role=Role.ADMIN)
    asked = {client_pk for client_pk, _ in added | removed}
    found = {row.pk: row for row in Client.objects.filter(organization=organization, pk__in=asked)}
    restricted = {pk: row for pk, row in found.items() if row.restricted}
    rows = ServiceClientVendor.objects.filter(client__in=restricted)
    # A row that has ended is no access that could be taken, or given again.
    remove_ended(rows.select_related("client"), organization.id)
    held = {(row.client_id, row.vendor): row for row in rows}
    new = sorted(pair for pair in added if pair[0] in restricted and pair not in held)
    old = sorted(pair for pair in removed if pair in held)
    for vendor in {vendor for _, vendor in new}:
        known_vendor(vendor)
    ServiceClientVendor.objects.bulk_create(
        ServiceClientVendor(client=restricted[client_pk], vendor=vendor, granted_by=actor, expires_at=end)
        for client_pk, vendor in new
    )
    rows.filter(pk__in=[held[pair].pk for pair in old]).delete()
    _record(actor, organization, restricted, new, old, end)
    return ClientChangeCounts(
        added=len(new),
        removed=len(old),
        gone=len(asked - set(found)),
        unrestricted=len(found) - len(restricted),
        ends_lost=sum(held[pair].expires_at is not None for pair in old),
    )


def _record(
    actor: User,
    organization: Organization,
    clients: dict[UUID, Client],
    new: list[ClientVendor],
    old: list[ClientVendor],
    end: datetime | None,
) -> None:
    until = {} if end is None else {"expiresAt": clock.rfc3339(end)}
    events = [
        AdminEvent(event, clients[client_pk].as_target(), {"vendor": vendor, **facts})
        for event, pairs, facts in (
            (EventType.SERVER_ACCESS_GRANTED, new, until),
            (EventType.SERVER_ACCESS_REVOKED, old, {}),
        )
        for client_pk, vendor in pairs
    ]
    if events:
        record_admin_rows(events, org_id=organization.id, actor=actor.as_actor())
        bump_clients(*(clients[client_pk] for client_pk in {client_pk for client_pk, _ in [*new, *old]}))
