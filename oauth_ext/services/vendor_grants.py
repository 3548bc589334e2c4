"""The explicit vendor list of a service client. Without a list it may use every vendor the organization connected."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction

from audit.event_types import EventType
from audit.record import record_admin
from gateway.catalog.registry import known_vendor
from gateway.coordination import epochs
from gateway.lib.errors import NotFound
from oauth_ext.models import Client, ServiceClientGrant
from orgs.errors import LastClientGrant
from orgs.locking import lock_for_change
from orgs.models import Organization, User
from orgs.roles import Role
from orgs.services.server_access import require_vendors


@transaction.atomic
def grant_client(*, actor: User, organization: Organization, client: Client, vendor: str) -> ServiceClientGrant:
    """The vendor is on the client's list. The first one restricts the client to it.

    Raises: NotFound for an unknown vendor or a client that is gone; Forbidden.   Spec: D34, D59
    """
    _begin(organization, actor, client)
    known_vendor(vendor)
    grant, created = ServiceClientGrant.objects.get_or_create(
        client=client, vendor=vendor, defaults={"granted_by": actor}
    )
    if created:
        _record(EventType.SERVER_ACCESS_GRANTED, actor, organization, client, vendor=vendor)
    return grant


@transaction.atomic
def revoke_client(*, actor: User, organization: Organization, client: Client, vendor: str) -> None:
    """The vendor is not on the client's list, whether or not it was.

    Raises: LastClientGrant, because without a list the client could use everything; NotFound, Forbidden.   Spec: D34
    """
    _begin(organization, actor, client)
    grants = ServiceClientGrant.objects.filter(client=client)
    if not grants.filter(vendor=vendor).exists():
        known_vendor(vendor)
        return
    if grants.count() == 1:
        raise LastClientGrant
    grants.filter(vendor=vendor).delete()
    _record(EventType.SERVER_ACCESS_REVOKED, actor, organization, client, vendor=vendor)


@transaction.atomic
def replace_client_grants(
    *, actor: User, organization: Organization, client: Client, vendors: Sequence[str]
) -> list[str]:
    """The client's list is exactly `vendors`, sorted; an empty one lifts the restriction.

    Raises: Invalid for an unknown vendor, and then nothing changed; NotFound, Forbidden.   Spec: D34, D59
    """
    _begin(organization, actor, client)
    wanted = require_vendors(vendors)
    grants = ServiceClientGrant.objects.filter(client=client)
    had = set(grants.values_list("vendor", flat=True))
    grants.exclude(vendor__in=wanted).delete()
    ServiceClientGrant.objects.bulk_create(
        ServiceClientGrant(client=client, vendor=vendor, granted_by=actor) for vendor in wanted if vendor not in had
    )
    if had != set(wanted):
        _record(EventType.SERVER_ACCESS_REPLACED, actor, organization, client, vendors=wanted, were=sorted(had))
    return wanted


def _begin(organization: Organization, actor: User, client: Client) -> None:
    lock_for_change(organization, actor=actor, role=Role.ADMIN)
    if not Client.objects.filter(pk=client.pk, organization=organization).exists():
        raise NotFound


def _record(event: EventType, actor: User, organization: Organization, client: Client, **facts: object) -> None:
    record_admin(event, org_id=organization.id, actor=actor.as_actor(), target=client.as_target(), metadata=facts)
    epochs.bump_on_commit(epochs.subject(client.subject))
