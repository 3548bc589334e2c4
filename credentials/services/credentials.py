"""Store, replace and delete credentials of all four scopes. The caller has asked the vendor before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from audit.actor import Actor
from audit.admin_log import record_admin
from audit.event_types import EventType
from credentials.credential_scope import CredentialScope
from credentials.errors import CredentialUnconfirmed, KeyNameTaken, TeamHasKey
from credentials.models import Credential, VendorConnection
from credentials.sealing import seal_fields
from credentials.selectors import people_vendors
from credentials.vendor_check import CheckResult
from gateway.catalog.fields import check_fields
from gateway.catalog.vendor import Vendor
from gateway.coordination import epochs
from gateway.lib import clock
from gateway.lib.errors import Invalid, NotFound
from gateway.lib.rows import required_row
from gateway.lib.sentences import sentence
from gateway.lib.text import clean_name
from orgs.locking import lock_for_change
from orgs.models import Organization, Team, User
from orgs.notices import CREDENTIAL_REPLACED, tell_owners
from orgs.quotas import require_quota
from orgs.roles import Role
from orgs.services.open_requests import end_requests_for_disconnected


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
    check: CheckResult | None = None,
    anyway: bool = True,
    is_sign_in: bool = False,
) -> Credential:
    """Seal `fields` at the scope. Replacing keeps the id and raises the revision. Spec: §4.6 · D62-D66, D161, D170

    `team` goes with the scopes team and named_key (None: unbound), `service_client` with service_client, `name` with
    named_key. `check`: the vendor's word on these fields. `anyway`: fields that it did not accept may replace stored
    ones. `is_sign_in`: a connection takes the place of all fields; otherwise fields end the connection that was there.
    Raises: Invalid with `fields`; NotFound for a team or client of another organization; Forbidden if the actor
    is no longer an admin; CredentialUnconfirmed; KeyNameTaken, TeamHasKey, LimitReached; UnusableCredential if the
    organization's data key does not open.
    """
    # Checks without side effects come before the locks.
    values = {} if is_sign_in else check_fields(vendor, fields)
    natural_key = _natural_key(organization, vendor, scope, team, service_client, name)
    lock_for_change(organization, actor=actor, role=Role.ADMIN)
    _require_owned(organization, team, service_client)
    stored = _existing(natural_key)
    if stored is not None:
        require_confirmed(check, anyway=anyway)
    credential = stored or Credential(created_by=actor, revision=0, **asdict(natural_key))
    if stored is not None and not is_sign_in:
        _end_connection(stored)
    _write_fields(credential, values, actor, check)
    if scope is CredentialScope.NAMED_KEY:
        event = EventType.CREDENTIAL_KEY_CREATED
    else:
        event = EventType.CREDENTIAL_CREATED if stored is None else EventType.CREDENTIAL_REPLACED
    _record_fields(event, actor, credential)
    if stored is not None:
        _tell_of_replacement(actor, credential, vendor)
    return credential


@transaction.atomic
def replace_named_key(
    *,
    actor: User,
    organization: Organization,
    key_id: UUID,
    vendor: Vendor,
    fields: Mapping[str, object],
    check: CheckResult | None = None,
    anyway: bool = True,
) -> Credential:
    """New fields for a named key, which keeps its id, name and team. Spec: D153, D170

    Raises: Invalid with `fields`; NotFound; Forbidden; CredentialUnconfirmed; UnusableCredential.
    """
    values = check_fields(vendor, fields)
    lock_for_change(organization, actor=actor, role=Role.ADMIN)
    keys = Credential.objects.filter(organization=organization, vendor=vendor.slug)
    key = required_row(keys.filter(scope=CredentialScope.NAMED_KEY.value, pk=key_id))
    require_confirmed(check, anyway=anyway)
    _write_fields(key, values, actor, check)
    _record_fields(EventType.CREDENTIAL_KEY_REPLACED, actor, key)
    _tell_of_replacement(actor, key, vendor)
    return key


def _end_connection(credential: Credential) -> None:
    """Fields take the place of a sign-in, which ends here and at the vendor."""
    # Locked: a renewal that ends now would raise its revision.
    for row in VendorConnection.objects.select_for_update().filter(credential=credential):
        # Cached results are keyed by id and revision, of either.
        credential.revision = max(credential.revision, row.revision)
        row.delete()


def _tell_of_replacement(actor: User, credential: Credential, vendor: Vendor) -> None:
    org_id = credential.organization_id
    tell_owners(CREDENTIAL_REPLACED, organization_id=org_id, actor=actor, also=[actor], vendor=vendor.name)


def require_confirmed(check: CheckResult | None, *, anyway: bool) -> None:
    """Raises: CredentialUnconfirmed. Spec: D170"""
    if not anyway and (check is None or not check.validated):
        detail = f"{check.detail} " if check else ""
        raise CredentialUnconfirmed(sentence("%(detail)sYour current credentials stay active.", detail=detail))


def _write_fields(credential: Credential, values: Mapping[str, str], actor: User, check: CheckResult | None) -> None:
    # Cached results are keyed by the revision.
    credential.revision += 1
    credential.data_key_version, credential.sealed = seal_fields(
        organization_id=credential.organization_id,
        vendor=credential.vendor,
        scope=CredentialScope(credential.scope),
        record_id=credential.id,
        fields=values,
    )
    credential.updated_at = credential.stored_at = clock.now()
    credential.stored_by = actor
    # A use of the former fields says nothing of these.
    credential.last_used_at = None
    note_check(credential, check, credential.updated_at)
    credential.save()


def note_check(credential: Credential, check: CheckResult | None, at: datetime) -> None:
    """Set the columns of the last check; None: these fields were never checked."""
    credential.checked_at = at if check else None
    credential.check_verdict = check.verdict.value if check else ""
    credential.check_detail = check.detail if check else ""
    credential.check_tools = check.tools if check else None
    credential.validated_at = at if check and check.validated else None


def _record_fields(event: EventType, actor: User, credential: Credential) -> None:
    record(event, actor, credential, validated=credential.validated_at is not None, revision=credential.revision)


@transaction.atomic
def delete_credential(*, actor: User | Actor, credential: Credential) -> None:
    """Raises: NotFound if it is already deleted; Forbidden. Spec: §4.6 · D9, D67"""
    lock_for_change(credential.organization_id, actor=actor, role=Role.ADMIN)
    deleted, _ = Credential.objects.filter(pk=credential.pk, organization_id=credential.organization_id).delete()
    # Another request deleted it first.
    if not deleted:
        raise NotFound
    is_key = credential.scope == CredentialScope.NAMED_KEY.value
    record(EventType.CREDENTIAL_KEY_DELETED if is_key else EventType.CREDENTIAL_DELETED, actor, credential)
    end_requests_for_disconnected(credential.organization_id, people_vendors(credential.organization))


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
    require_quota(rows, settings.NAMED_KEYS_PER_VENDOR, sentence("named keys per vendor"))
    return None


def record(event: EventType, actor: User | Actor, credential: Credential, **facts: bool | int | str | None) -> None:
    """Write the audit row and bump the epoch."""
    record_admin(
        event,
        org_id=credential.organization_id,
        actor=actor.as_actor(),
        target=credential.as_target(),
        metadata=metadata(credential, **facts),
    )
    # Every process reloads the organization's credentials before its next call.
    epochs.bump_on_commit(epochs.organization(credential.organization_id))


def metadata(credential: Credential, **facts: bool | int | str | None) -> dict[str, Any]:
    """Of an audit row: nothing of the credential's content."""
    return {
        "vendor": credential.vendor,
        "scope": credential.scope,
        "name": credential.name,
        "teamId": str(credential.team_id) if credential.team_id else None,
        "serviceClientId": str(credential.service_client_id) if credential.service_client_id else None,
        **facts,
    }
