"""Log shipping destinations under the organization's lock. Spec: §4.13 · D95"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.db import transaction

from audit.actor import Actor
from audit.models import LogDestination
from audit.shipping import destinations
from audit.shipping.destinations import Changes
from gateway.lib.sentences import sentence
from orgs.locking import lock_for_change
from orgs.models import Organization, User
from orgs.quotas import require_quota
from orgs.roles import Role


@transaction.atomic
def create_destination(
    *,
    actor: User | Actor,
    organization: Organization,
    label: str,
    platform: str,
    endpoint_url: str,
    config: Mapping[str, object],
) -> LogDestination:
    """Raises: Invalid, ConfigMissing, EndpointNotAllowed, LimitReached; NotFound, Forbidden."""
    lock_for_change(organization, actor=actor, role=Role.ADMIN)
    rows = destinations.destinations_of(organization.pk)
    require_quota(rows, settings.LOG_DESTINATIONS_PER_ORGANIZATION, sentence("log destinations"))
    return destinations.create(
        org_id=organization.pk,
        actor=actor.as_actor(),
        label=label,
        platform=platform,
        endpoint_url=endpoint_url,
        config=config,
    )


@transaction.atomic
def change_destination(
    *, actor: User | Actor, organization: Organization, destination_id: UUID, changes: Changes
) -> LogDestination:
    """Raises: Invalid, ConfigMissing, EndpointNotAllowed; NotFound, Forbidden."""
    destination = _locked(actor, organization, destination_id)
    destinations.change(destination, changes, actor=actor.as_actor())
    return destination


@transaction.atomic
def delete_destination(*, actor: User | Actor, organization: Organization, destination_id: UUID) -> None:
    """Raises: NotFound, Forbidden."""
    destinations.delete(_locked(actor, organization, destination_id), actor=actor.as_actor())


@transaction.atomic
def replay_destination(
    *, actor: User | Actor, organization: Organization, destination_id: UUID, since: datetime
) -> LogDestination:
    """Raises: Invalid; NotFound, Forbidden."""
    destination = _locked(actor, organization, destination_id)
    destinations.replay(destination, since, actor=actor.as_actor())
    return destination


def _locked(actor: User | Actor, organization: Organization, destination_id: UUID) -> LogDestination:
    lock_for_change(organization, actor=actor, role=Role.ADMIN)
    return destinations.destination_of(organization.pk, destination_id, locked=True)
