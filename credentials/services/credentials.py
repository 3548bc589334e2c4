"""Store, replace and delete credentials of all four scopes. The caller has asked the vendor before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Protocol
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from audit.admin_log import record_admin
from audit.event_types import EventType
from credentials.credential_scope import CredentialScope
from credentials.errors import KeyNameTaken, TeamHasKey
from credentials.models import Credential
from credentials.sealing import seal_fields
from gateway.catalog.fields import check_fields
from gateway.catalog.vendor import Vendor
from gateway.coordination import epochs
from gateway.lib import clock
from gateway.lib.errors import Invalid, NotFound
from gateway.lib.text import clean_name
from orgs.locking import lock_for_change
from orgs.models import Organization, Team, User
from orgs.quotas import require_quota
from orgs.roles import Role


class ServiceClient(Protocol):
    """The part of `oauth_ext.models.Client` that is used here; services of this app may not import it."""

    @property
    def id(self) -> UUID: ...

    @property
    # None for a public client, which cannot have credentials.
    def organization_id(self) -> UUID | None: ...


@dataclass(frozen=True, slots=True)
class _NaturalKey:
    organization_id: UUID
    vendor: str
    scope: str
    team_id: UUID | None
    service_client_id: UUID | None
    name: str


@transaction.atomic
def store_credential(
    *,
    actor: User,
    organization: Organization,
    vendor: Vendor,
    scope: CredentialScope,
    fields: Mapping[str, object],
    team: Team | None = None,
    service_client: ServiceClient | None = None,
    name: str = "",
    validated: bool = False,
) -> Credential:
    """Seal `fields` at the scope. Replacing keeps the id and raises the revision. Spec: §4.6 · D62-D66, D161

    `team` goes with the scopes team and named_key (None: unbound), `service_client` with service_client, `name` with
    named_key. `validated`: the vendor has just accepted these fields. Raises: Invalid with `fields`; NotFound for a
    team or client of another organization; Forbidden if the actor is no longer an admin; KeyNameTaken, TeamHasKey,
    LimitReached; UnusableCredential if the organization's data key does not open.
    """
    # Checks without side effects come before the locks.
    values = check_fields(vendor, fields)
    natural_key = _natural_key(organization, vendor, scope, team, service_client, name)
    lock_for_change(organization, actor=actor, role=Role.ADMIN)
    _require_owned(organization, team, service_client)
    credential = _existing(natural_key) or Credential(created_by=actor, revision=0, **asdict(natural_key))
    # Cached results are keyed by the revision.
    credential.revision += 1
    credential.data_key_version, credential.sealed = seal_fields(
        organization_id=organization.id, vendor=vendor.slug, scope=scope, record_id=credential.id, fields=values
    )
    credential.updated_at = clock.now()
    credential.validated_at = credential.updated_at if validated else None
    credential.save()
    if scope is CredentialScope.NAMED_KEY:
        event = EventType.CREDENTIAL_KEY_CREATED
    else:
        event = EventType.CREDENTIAL_CREATED if credential.revision == 1 else EventType.CREDENTIAL_REPLACED
    record(event, actor, credential, validated=validated, revision=credential.revision)
    return credential


@transaction.atomic
def delete_credential(*, actor: User, credential: Credential) -> None:
    """Raises: NotFound if it is already deleted; Forbidden. Spec: §4.6 · D9, D67"""
    lock_for_change(credential.organization_id, actor=actor, role=Role.ADMIN)
    deleted, _ = Credential.objects.filter(pk=credential.pk, organization_id=credential.organization_id).delete()
    # Another request deleted it first.
    if not deleted:
        raise NotFound
    is_key = credential.scope == CredentialScope.NAMED_KEY.value
    record(EventType.CREDENTIAL_KEY_DELETED if is_key else EventType.CREDENTIAL_DELETED, actor, credential)


def _natural_key(
    organization: Organization,
    vendor: Vendor,
    scope: CredentialScope,
    team: Team | None,
    service_client: ServiceClient | None,
    name: str,
) -> _NaturalKey:
    """Raises: ValueError if the scope does not go with the holder or name; Invalid for a bad name."""
    fits = {
        CredentialScope.ORGANIZATION: team is None and service_client is None and not name,
        CredentialScope.TEAM: team is not None and service_client is None and not name,
        CredentialScope.NAMED_KEY: service_client is None,
        CredentialScope.SERVICE_CLIENT: team is None and service_client is not None and not name,
    }
    # An error in the calling code, not in a person's input.
    if not fits[scope]:
        raise ValueError(f"a credential of scope {scope.value} does not go with this team, service client or name")
    if scope is CredentialScope.NAMED_KEY:
        try:
            name = clean_name(name)
        except ValueError as fault:
            raise Invalid(fields={"name": [str(fault)]}) from fault
    return _NaturalKey(
        organization_id=organization.id,
        vendor=vendor.slug,
        scope=scope.value,
        team_id=team.id if team else None,
        service_client_id=service_client.id if service_client else None,
        name=name,
    )


def _require_owned(organization: Organization, team: Team | None, service_client: ServiceClient | None) -> None:
    """Lock the team and the service client until the transaction ends. Raises: NotFound."""
    if team is not None:
        teams = Team.objects.select_for_update(no_key=True).filter(pk=team.pk, organization=organization)
        if teams.values_list("pk").first() is None:
            raise NotFound
    if service_client is not None:
        clients = Credential.service_client.field.related_model._default_manager
        owned = clients.select_for_update(no_key=True).filter(pk=service_client.id, organization=organization)
        if owned.values_list("pk").first() is None:
            raise NotFound


def _existing(natural_key: _NaturalKey) -> Credential | None:
    """The credential to replace. Raises: KeyNameTaken, TeamHasKey, LimitReached."""
    rows = Credential.objects.filter(
        organization_id=natural_key.organization_id, vendor=natural_key.vendor, scope=natural_key.scope
    )
    if natural_key.scope != CredentialScope.NAMED_KEY:
        return rows.filter(Q(team_id=natural_key.team_id), Q(service_client_id=natural_key.service_client_id)).first()
    # A named key is never replaced.
    if rows.filter(name=natural_key.name).exists():
        raise KeyNameTaken
    if natural_key.team_id is not None and rows.filter(team_id=natural_key.team_id).exists():
        raise TeamHasKey
    require_quota(rows, settings.NAMED_KEYS_PER_VENDOR, "named keys for one vendor")
    return None


def record(event: EventType, actor: User, credential: Credential, **facts: bool | int | str | None) -> None:
    """Write the audit row and bump the epoch. The metadata holds nothing of the credential's content."""
    record_admin(
        event,
        org_id=credential.organization_id,
        actor=actor.as_actor(),
        target=credential.as_target(),
        metadata={
            "vendor": credential.vendor,
            "scope": credential.scope,
            "name": credential.name,
            "teamId": str(credential.team_id) if credential.team_id else None,
            "serviceClientId": str(credential.service_client_id) if credential.service_client_id else None,
            **facts,
        },
    )
    # Every process reloads the organization's credentials before its next call.
    epochs.bump_on_commit(epochs.organization(credential.organization_id))
