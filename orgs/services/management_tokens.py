"""Management tokens: made and revoked by their person, looked up by each request. docs/decisions/0099"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from audit.actor import Actor
from audit.admin_log import record_admin
from audit.event_types import EventType
from gateway.lib import clock, management_token_format, secrets
from gateway.lib.errors import Invalid
from gateway.lib.management_token_format import ManagementTokenParts
from gateway.lib.rows import required_row
from gateway.lib.sentences import sentence
from gateway.lib.text import clean_name
from orgs.locking import current_membership, lock_active_person, lock_for_change, lock_organization
from orgs.models import ManagementToken, Organization, User
from orgs.models.management_token import NAME_CHARACTERS
from orgs.quotas import require_quota
from orgs.roles import Role, TokenScope

_NO_SECRET = bytes(32)  # compared against when no token has the prefix


@dataclass(frozen=True, slots=True)
class MadeToken:
    row: ManagementToken
    token: str = field(repr=False)  # shown once, never stored


@transaction.atomic
def create_token(
    *, actor: User, organization: Organization, name: str, scope: str, expires_in_days: int | None = None
) -> MadeToken:
    """A token of the actor's own. Spec: D168

    Raises: NotFound where the actor is no member; Invalid; LimitReached; DeactivatedPerson.
    """
    days = settings.MANAGEMENT_TOKEN_DEFAULT_DAYS if expires_in_days is None else expires_in_days
    cleaned = _checked(name, scope, days)
    locked = lock_for_change(organization, actor=actor, role=Role.MEMBER)
    lock_active_person(actor)
    membership = current_membership(locked, actor, role=Role.MEMBER)
    own = ManagementToken.objects.filter(membership=membership)
    require_quota(own, settings.MANAGEMENT_TOKENS_PER_MEMBER, sentence("management tokens per member"))
    now, parts = clock.now(), _random_parts()
    row = ManagementToken.objects.create(
        membership=membership,
        name=cleaned,
        scope=scope,
        prefix=parts.prefix,
        secret_sha256=secrets.sha256(parts.secret),
        created_at=now,
        expires_at=now + timedelta(days=days),
    )
    facts = {"scope": row.scope, "expires_at": clock.rfc3339(row.expires_at)}
    _record(EventType.MANAGEMENT_TOKEN_CREATED, actor, row, locked.pk, facts)
    return MadeToken(row, parts.text())


@transaction.atomic
def revoke_token(*, actor: User, token_id: UUID) -> ManagementToken:
    """End a token of the actor's own. Raises: NotFound, also for another person's."""
    found = required_row(
        ManagementToken.objects.filter(pk=token_id, membership__user=actor).select_related("membership")
    )
    return _end(found, actor)


@transaction.atomic
def end_token(*, actor: Actor, token_id: UUID) -> ManagementToken:
    """For operators and support staff. Raises: NotFound."""
    return _end(required_row(ManagementToken.objects.filter(pk=token_id).select_related("membership")), actor)


def token_in_force(bearer: str) -> ManagementToken | None:
    """The token with its membership, person and organization. None for a wrong, ended or expired one. One query."""
    parts = management_token_format.parse(bearer)
    if parts is None:
        return None
    rows = ManagementToken.objects.select_related("membership__organization", "membership__user")
    row = rows.filter(prefix=parts.prefix).first()
    # Compared also without a row: the time of a refusal must not reveal which prefixes exist.
    genuine = secrets.equal(_NO_SECRET if row is None else bytes(row.secret_sha256), secrets.sha256(parts.secret))
    if row is None or not genuine or row.is_expired(clock.now()) or not row.membership.user.is_active:
        return None
    return row


def note_use(row: ManagementToken, *, every: timedelta) -> None:
    """Store that the token is used now, at most once in `every`. The first use is written to the log."""
    now = clock.now()
    rows = ManagementToken.objects.filter(pk=row.pk)
    if row.last_used_at is not None:
        rows.filter(Q(last_used_at__lte=now - every)).update(last_used_at=now)
        return
    with transaction.atomic():
        # The WHERE clause of the update is the lock: of parallel first uses one writes the row.
        if rows.filter(last_used_at=None).update(last_used_at=now):
            person = row.membership.user
            _record(EventType.MANAGEMENT_TOKEN_FIRST_USED, person, row, row.membership.organization_id, {})


def _end(found: ManagementToken, actor: User | Actor) -> ManagementToken:
    organization = lock_organization(found.membership.organization_id)
    # Under the lock: of two revocations the second finds no token.
    row = required_row(ManagementToken.objects.filter(pk=found.pk))
    key = row.pk
    row.delete()
    row.pk = key
    _record(EventType.MANAGEMENT_TOKEN_REVOKED, actor, row, organization.pk, {})
    return row


def _checked(name: str, scope: str, days: int) -> str:
    """The cleaned name. Raises: Invalid."""
    faults: dict[str, list[str]] = {}
    cleaned = ""
    try:
        cleaned = clean_name(name, max_characters=NAME_CHARACTERS)
    except ValueError as fault:
        faults["name"] = [str(fault)]
    if scope not in set(TokenScope):
        faults["scope"] = [sentence("Must be read or admin.")]
    most = settings.MANAGEMENT_TOKEN_MAX_DAYS
    if not 1 <= days <= most:
        faults["expires_in_days"] = [sentence("Must be from 1 to %(most)s.", most=most)]
    if faults:
        raise Invalid(fields=faults)
    return cleaned


def _record(
    event: EventType, actor: User | Actor, row: ManagementToken, org_id: UUID, facts: Mapping[str, object]
) -> None:
    metadata = {"prefix": row.prefix, **facts}
    record_admin(event, org_id=org_id, actor=actor.as_actor(), target=row.as_target(), metadata=metadata)


def _random_parts() -> ManagementTokenParts:
    return ManagementTokenParts(
        prefix=management_token_format.MARK + secrets.random_base62(management_token_format.PUBLIC_CHARACTERS),
        secret=secrets.random_base62(management_token_format.SECRET_CHARACTERS),
    )


def end_token_again(*, actor: Actor, token_id: UUID) -> bool:
    """End a token that a restored database brought back; return whether it was there."""
    if not ManagementToken.objects.filter(pk=token_id).exists():
        return False
    end_token(actor=actor, token_id=token_id)
    return True


def end_tokens_of_before(*, organization: Organization, restored_to: datetime) -> int:
    """End the tokens that were made until the restored moment; return how many."""
    rows = ManagementToken.objects.filter(membership__organization=organization, created_at__lte=restored_to)
    return rows.delete()[1].get(ManagementToken._meta.label, 0)


def end_tokens_of_person(person: User) -> None:
    """The caller locks the person and writes the log."""
    ManagementToken.objects.filter(membership__user=person).delete()
