"""Deactivates and reactivates a person: sessions, tokens, and the agent keys that the person created."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

import structlog
from django.db import transaction
from django.db.models import F

from audit.actor import Actor, Target
from audit.admin_log import record_admin
from audit.event_types import EventType
from gateway.coordination import epochs
from gateway.lib.errors import Conflict
from gateway.lib.rows import required_row
from oauth_ext.models import AccessToken, AgentKey, Client, Grant, RememberedConsent, TokenFamily
from oauth_ext.services.agent_keys import end_agent_key
from orgs import selectors
from orgs.locking import lock_organization
from orgs.models import Identity, Membership, Organization, User
from orgs.services.management_tokens import end_tokens_of_person

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class DeactivationResult:
    """The ended rows of a deactivation, and the rows that an operator must look at."""

    person: User
    token_families: int
    agent_keys: Sequence[AgentKey]  # created by this person, the only one who saw their secrets
    kept_keys: Sequence[AgentKey]  # kept on request
    secrets_seen: Sequence[Client]  # service clients whose secret this person saw
    without_owner: Sequence[Organization]  # no owner can sign in

    def lines(self) -> list[str]:
        """Returns the present state and the remaining work, one sentence a line."""
        person, count = self.person, self.token_families
        return [
            f"{person.email} ({person.pk}) is deactivated: all sessions and {count} token families ended.",
            *(f"Ended: agent key {key.prefix} of {_label(key.client)}." for key in self.agent_keys),
            *(
                f"Warning: agent key {key.prefix} of {_label(key.client)} keeps working; the person may have a copy."
                for key in self.kept_keys
            ),
            *(
                f"Note: the person created {_label(client)} and was shown its secret. Rotate it if a copy may be left."
                for client in self.secrets_seen
            ),
            *(
                f"Warning: {row.name} ({row.pk}) no longer has an active owner. "
                f"Add one: add_member {row.pk} EMAIL --role owner"
                for row in self.without_owner
            ),
        ]


@transaction.atomic
def deactivate_person(*, actor: Actor, user_id: uuid.UUID, ends_agent_keys: bool = True) -> DeactivationResult:
    """Raises: NotFound; Conflict when the person is already deactivated."""
    _lock_organizations(user_id, _keys_of(user_id))
    # The strong lock waits for requests that store tokens for this person; later ones find the person inactive.
    person = _locked_person(user_id)
    if not person.is_active:
        raise Conflict(f"{person.email or person.pk} is already deactivated.")
    # Refused everywhere from the commit on. Memberships stay, without effect; everything else ends for good.
    person.is_active = person.is_staff = person.is_superuser = False
    person.end_sessions()
    person.save(update_fields=["is_active", "is_staff", "is_superuser", "password"])
    Identity.objects.filter(user=person).update(refresh_sealed=b"", refresh_key_id="")
    keys = _keys_of(user_id)  # again: new keys need the organization lock, which is held now
    ended_keys = keys if ends_agent_keys else []
    for key in ended_keys:
        end_agent_key(actor=actor, key=key)
    end_tokens_of_person(person)
    families = _end_tokens(person)
    rows = list(Membership.objects.filter(user=person).select_related("organization").order_by("organization_id"))
    for row in rows:
        _record(EventType.MEMBER_DEACTIVATED, actor, row, person, role=row.role)
    epochs.bump_on_commit(epochs.subject(str(person.pk)))
    log.info("person deactivated", user_id=str(person.pk), token_families=families, agent_keys=len(ended_keys))
    return DeactivationResult(
        person=person,
        token_families=families,
        agent_keys=ended_keys,
        kept_keys=[] if ends_agent_keys else keys,
        secrets_seen=list(
            Client.objects.filter(created_by=person, organization__isnull=False)
            .select_related("organization")
            .order_by("name", "pk")
        ),
        without_owner=[row.organization for row in rows if not selectors.may_end_membership(row)],
    )


@transaction.atomic
def reactivate_person(*, actor: Actor, user_id: uuid.UUID) -> User:
    """Ended sessions, tokens and keys stay ended. Raises: NotFound; Conflict when the person is active."""
    _lock_organizations(user_id, [])
    person = _locked_person(user_id)
    if person.is_active:
        raise Conflict(f"{person.email or person.pk} is active.")
    person.is_active = True
    person.save(update_fields=["is_active"])
    for row in Membership.objects.filter(user=person).order_by("organization_id"):
        _record(EventType.MEMBER_REACTIVATED, actor, row, person, role=row.role)
    epochs.bump_on_commit(epochs.subject(str(person.pk)))
    log.info("person reactivated", user_id=str(person.pk))
    return person


def _keys_of(user_id: uuid.UUID) -> list[AgentKey]:
    keys = AgentKey.objects.filter(created_by_id=user_id).select_related("client__organization")
    # A rotated key before the current one, which ends both.
    return list(keys.order_by(F("ends_at").asc(nulls_last=True), "pk"))


def _label(client: Client) -> str:
    organization = client.organization
    return f"{client.name} ({client.client_id}) of {organization.name if organization else 'no organization'}"


def _lock_organizations(user_id: uuid.UUID, keys: Sequence[AgentKey]) -> None:
    # In the order of their ids, and before the person: the order of lock_order.
    own = Membership.objects.filter(user_id=user_id).values_list("organization_id", flat=True)
    for org_id in sorted({*own, *(key.client.organization_id for key in keys if key.client.organization_id)}):
        lock_organization(org_id)


def _locked_person(user_id: uuid.UUID) -> User:
    return required_row(User.objects.select_for_update().filter(pk=user_id))


def _end_tokens(person: User) -> int:
    families = TokenFamily.objects.filter(user=person)
    held = list(families.select_for_update().order_by("pk").values_list("pk", flat=True))
    TokenFamily.objects.filter(pk__in=held).delete()
    for model in (AccessToken, Grant, RememberedConsent):
        model._default_manager.filter(user=person).delete()
    return len(held)


def _record(event: EventType, actor: Actor, row: Membership, person: User, **facts: str) -> None:
    record_admin(
        event,
        org_id=row.organization_id,
        actor=actor,
        target=Target(id=str(person.pk), label=person.name),
        metadata=facts,
    )
