"""Ends keys, tokens and secrets that a restored database brought back. Each function returns whether it ended one.

Repeated runs change nothing: rows that were made after the restore have other ids or later times. docs/decisions/0083
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from django.db import transaction

from audit.actor import Actor
from audit.event_types import EventType
from gateway.coordination import epochs
from gateway.lib import clock, secrets
from gateway.lib.errors import NotFound
from gateway.lib.revocation_journal import EndKind
from oauth_ext.models import (
    AccessToken,
    AgentKey,
    AuthorizationRequest,
    Client,
    DeviceGrant,
    Grant,
    RememberedConsent,
    TokenFamily,
    TrustedIssuer,
)
from oauth_ext.services.agent_keys import end_agent_key
from oauth_ext.services.service_clients import (
    delete_service_client,
    locked_service_client,
    record_client_change,
)
from oauth_ext.services.token_families import (
    bump_people_of,
    end_family,
    end_token_alone,
    lock_families_of,
    locked_family,
)
from oauth_ext.services.trusted_issuers import remove_issuer
from orgs.models import Organization


def organizations_of_keys(key_ids: Collection[uuid.UUID]) -> Mapping[uuid.UUID, uuid.UUID]:
    """The organization of each agent key that exists."""
    rows = AgentKey.objects.filter(pk__in=key_ids, client__organization__isnull=False)
    return dict(rows.values_list("pk", "client__organization_id"))


def end_key_again(*, actor: Actor, key_id: uuid.UUID, until: datetime | None) -> bool:
    """A key whose overlap still runs keeps it."""
    key = AgentKey.objects.select_related("client").filter(pk=key_id).first()
    if key is None:
        return False
    if until is not None and until > clock.now():
        if key.ends_at is not None:
            return False
        AgentKey.objects.filter(client=key.client, ends_at__isnull=False).delete()
        AgentKey.objects.filter(pk=key.pk).update(ends_at=until)
        epochs.bump_on_commit(epochs.subject(key.client.subject))
        return True
    try:
        end_agent_key(actor=actor, key=key)
    except NotFound:
        return False
    return True


@transaction.atomic
def end_family_again(family_id: uuid.UUID) -> bool:
    family = locked_family(family_id)
    if family is None:
        return False
    if family.user_id is not None:
        RememberedConsent.objects.filter(user_id=family.user_id, client_id=family.client_id).delete()
    end_family(family)
    return True


def remove_issuer_again(*, actor: Actor, org_id: uuid.UUID, issuer_id: uuid.UUID) -> bool:
    """The trust that was ended, with the tokens that came back with it."""
    organization = Organization.objects.filter(pk=org_id).first()
    if organization is None:
        return False
    try:
        remove_issuer(actor=actor, organization=organization, issuer_id=issuer_id)
    except NotFound:
        return False
    return True


def end_access_token_again(*, number: int, ended_at: datetime) -> bool:
    """`ended_at`: when it ended, in whole milliseconds."""
    # Numbers are given again after a restore: a token that is younger than its end is another one. Not "than the moment
    # of the backup": an operator names one a little before it, and tokens of between would live on.
    made_before = ended_at + timedelta(milliseconds=1)
    rows = AccessToken.objects.filter(pk=number, created__lt=made_before)
    token = rows.select_related("application").first()
    if token is None:
        return False
    end_token_alone(token)
    return True


def delete_client_again(*, actor: Actor, client_id: uuid.UUID) -> bool:
    client = Client.objects.filter(pk=client_id, organization__isnull=False).first()
    if client is None:
        return False
    delete_service_client(actor=actor, client=client)
    return True


@transaction.atomic
def end_secret_again(*, actor: Actor, client_id: uuid.UUID, until: datetime | None, successor_at: datetime) -> bool:
    """The restored secret ends. The one that replaced it is lost, so the client needs another rotation.

    `successor_at`: when it was replaced, in whole milliseconds. The secret of then or later stays.
    """
    client = Client.objects.filter(pk=client_id, organization__isnull=False).first()
    if client is None:
        return False
    found, org_id = locked_service_client(actor=actor, client=client, strong=True)
    now = clock.now()
    if found.secret_rotated_at is not None and clock.whole_milliseconds(found.secret_rotated_at) >= successor_at:
        return False
    counts = until is not None and until > now
    found.previous_secret = found.client_secret if counts else ""
    found.previous_secret_ends_at = until if counts else None
    found.client_secret = secrets.random_url_safe()  # shown to no one
    found.secret_rotated_at = now
    found.save(update_fields=["client_secret", "previous_secret", "previous_secret_ends_at", "secret_rotated_at"])
    if not counts:
        lock_families_of(found)
        bump_people_of(found)
        AccessToken.objects.filter(application=found).delete()
    record_client_change(EventType.SERVICE_CLIENT_SECRET_ROTATED, org_id, actor, found, overlap_hours=0)
    return True


@transaction.atomic
def end_all_of_organization(*, org_id: uuid.UUID, restored_to: datetime) -> Mapping[EndKind, int]:
    """Ends every agent key, token family, token and trust of before; the caller holds the organization's lock."""
    keys = AgentKey.objects.filter(client__organization_id=org_id, created_at__lte=restored_to)
    families = TokenFamily.objects.filter(organization_id=org_id, created_at__lte=restored_to)
    tokens = AccessToken.objects.filter(organization_id=org_id, token_family=None, created__lte=restored_to)
    issuers = TrustedIssuer.objects.filter(organization_id=org_id, created_at__lte=restored_to)
    counts = {
        EndKind.AGENT_KEY: keys.delete()[1].get(AgentKey._meta.label, 0),
        EndKind.TOKEN_FAMILY: families.delete()[1].get(TokenFamily._meta.label, 0),
        EndKind.ACCESS_TOKEN: tokens.delete()[1].get(AccessToken._meta.label, 0),
        EndKind.TRUSTED_ISSUER: issuers.delete()[1].get(TrustedIssuer._meta.label, 0),
    }
    Grant.objects.filter(organization_id=org_id, created__lte=restored_to).delete()
    DeviceGrant.objects.filter(client__organization_id=org_id, created_at__lte=restored_to).delete()
    RememberedConsent.objects.filter(organization_id=org_id, granted_at__lte=restored_to).delete()
    return counts


def end_authorization_requests(restored_to: datetime) -> None:
    """Ends requests that wait for a person's decision."""
    AuthorizationRequest.objects.filter(created_at__lte=restored_to).delete()


def subjects_of_service_clients() -> list[str]:
    """The subject of every service client."""
    rows = Client.objects.filter(organization__isnull=False).only("organization_id", "client_id")
    return [row.subject for row in rows.iterator(chunk_size=2_000)]
