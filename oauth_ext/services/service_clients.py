"""Creates and deletes service clients, and rotates their secrets."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from datetime import timedelta

from django.conf import settings
from django.db import transaction

from audit.actor import Actor
from audit.admin_log import record_admin
from audit.event_types import EventType
from gateway.lib import clock, secrets
from gateway.lib.errors import Invalid, NotFound
from gateway.lib.revocation_journal import End, EndKind, note
from gateway.lib.rows import required_row
from gateway.lib.sentences import sentence
from gateway.lib.text import clean_name
from oauth_ext.models import AccessToken, Client
from oauth_ext.models.client import SERVICE_CLIENT_ID_PREFIX, ToolMode
from oauth_ext.services.overlap import overlap_end
from oauth_ext.services.token_families import bump_clients, bump_people_of, lock_families_of
from orgs.locking import lock_for_change
from orgs.models import Membership, Organization, User
from orgs.quotas import require_quota
from orgs.roles import Role

CLIENT_ID_CHARACTERS = 24


@dataclass(frozen=True, slots=True)
class CreatedServiceClient:
    client: Client
    client_secret: str = field(repr=False)  # shown once; stored as a hash


@dataclass(frozen=True, slots=True)
class RotatedSecret:
    client: Client
    client_secret: str = field(repr=False)  # shown once; stored as a hash


@transaction.atomic
def create_service_client(
    *,
    actor: User,
    organization: Organization,
    name: str,
    expires_in_days: int | None = None,
    tool_mode: ToolMode = ToolMode.ALL,
    lists_compactly: bool = False,
) -> CreatedServiceClient:
    """An admin may choose the mode of a new client; later an owner changes it.

    Raises: Invalid with `fields`; LimitReached; NotFound, Forbidden. Spec: §4.8 · D70, D72, D161"""
    cleaned, days = _validated(name, expires_in_days)
    client_secret = secrets.random_url_safe()
    now = clock.now()
    lock_for_change(organization, actor=actor, role=Role.ADMIN)
    own = Client.objects.filter(organization=organization)
    require_quota(own, settings.SERVICE_CLIENTS_PER_ORGANIZATION, "agents")
    client = Client.objects.create(
        client_id=SERVICE_CLIENT_ID_PREFIX + secrets.random_base62(CLIENT_ID_CHARACTERS),
        client_secret=client_secret,  # the field stores its hash
        client_type=Client.CLIENT_CONFIDENTIAL,
        authorization_grant_type=Client.GRANT_CLIENT_CREDENTIALS,
        organization=organization,
        name=cleaned,
        created_by=actor,
        responsible=Membership.objects.filter(organization=organization, user=actor).first(),
        expires_at=now + timedelta(days=days),
        tool_mode=tool_mode,
        lists_compactly=lists_compactly,
    )
    facts: dict[str, object] = {} if tool_mode == ToolMode.ALL else {"mode": tool_mode.value}
    if lists_compactly:
        facts["compact_list"] = True
    record_client_change(
        EventType.SERVICE_CLIENT_CREATED, organization.id, actor, client, expires_in_days=days, **facts
    )
    return CreatedServiceClient(client, client_secret)


@transaction.atomic
def rotate_client_secret(*, actor: User, client: Client, overlap_hours: int = 0) -> RotatedSecret:
    """`overlap_hours`: how long the old secret counts beside the new one.

    Raises: Invalid; NotFound for a deleted client; Forbidden. Spec: D72, D171
    """
    now = clock.now()
    ends_at = overlap_end(overlap_hours, now)
    found, org_id = locked_service_client(actor=actor, client=client, strong=True)
    client_secret = secrets.random_url_safe()
    # One old secret at most: another rotation ends it.
    found.previous_secret = "" if ends_at is None else found.client_secret
    found.previous_secret_ends_at = ends_at
    found.client_secret = client_secret  # the field stores its hash
    found.secret_rotated_at = now
    found.save(update_fields=["client_secret", "previous_secret", "previous_secret_ends_at", "secret_rotated_at"])
    note(End(EndKind.CLIENT_SECRET, str(found.pk), str(org_id), until=ends_at, successor_at=now))
    ended = 0
    if ends_at is None:
        lock_families_of(found)
        # Before they are gone.
        bump_people_of(found)
        # Refresh tokens of devices stay: they need the new secret.
        ended, _ = AccessToken.objects.filter(application=found).delete()
    facts = {"tokens_ended": ended, "overlap_hours": overlap_hours}
    record_client_change(EventType.SERVICE_CLIENT_SECRET_ROTATED, org_id, actor, found, **facts)
    return RotatedSecret(found, client_secret)


@transaction.atomic
def delete_service_client(*, actor: User | Actor, client: Client) -> None:
    """Raises: NotFound for a deleted client; Forbidden. Spec: §4.8 · D9, D74"""
    found, org_id = locked_service_client(actor=actor, client=client, strong=True)
    lock_families_of(found)
    record_client_change(EventType.SERVICE_CLIENT_DELETED, org_id, actor, found)
    # Tokens, agent key and credentials go with the row.
    found.delete()


def locked_service_client(*, actor: User | Actor, client: Client, strong: bool = False) -> tuple[Client, uuid.UUID]:
    """Returns the client and its organization's id. Raises: NotFound for a public or deleted client; Forbidden."""
    org_id = client.organization_id
    if org_id is None:
        raise NotFound
    # The organization first. A person must be an admin now; operators and support staff pass without a membership.
    lock_for_change(org_id, actor=actor, role=Role.ADMIN)
    # The strong lock also stops the storage of tokens for the client.
    rows = Client.objects.select_for_update(no_key=not strong)
    found = required_row(rows.filter(pk=client.pk, organization_id=org_id))
    return found, org_id


def record_client_change(
    event: EventType, org_id: uuid.UUID, actor: User | Actor, client: Client, **facts: object
) -> None:
    """Write the audit row and bump the epoch."""
    record_admin(
        event,
        org_id=org_id,
        actor=actor.as_actor(),
        target=client.as_target(),
        metadata={"client_id": client.client_id, **facts},
    )
    # Every process looks the client up again at its next use.
    bump_clients(client)


def _validated(name: str, expires_in_days: int | None) -> tuple[str, int]:
    fields: dict[str, list[str]] = {}
    cleaned, days = "", settings.SERVICE_CLIENT_DEFAULT_DAYS if expires_in_days is None else expires_in_days
    try:
        cleaned = clean_name(name)
    except ValueError as fault:
        fields["name"] = [str(fault)]
    # bool is an int, and True would be one day.
    if not isinstance(days, int) or isinstance(days, bool) or not 1 <= days <= settings.SERVICE_CLIENT_MAX_DAYS:
        fields["expires_in_days"] = [
            sentence(
                "Enter a whole number of days from 1 to %(service_client_max_days)s.",
                service_client_max_days=settings.SERVICE_CLIENT_MAX_DAYS,
            )
        ]
    if fields:
        raise Invalid(fields=fields)
    return cleaned, days
