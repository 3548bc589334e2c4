"""Members: add by an operator, change the role, remove, leave."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.db import transaction

from audit.actor import Actor
from audit.admin_log import record_admin
from audit.event_types import EventType
from gateway.coordination import epochs
from gateway.lib import clock
from gateway.lib.errors import Conflict, Forbidden
from gateway.lib.sentences import sentence
from orgs import events
from orgs.errors import CannotChangeOwnRole, LastOwner
from orgs.locking import current_membership, lock_active_person, lock_for_change, lock_organization
from orgs.models import Membership, Organization, Removal, User
from orgs.notices import OWNER_REMOVED, tell_owners
from orgs.quotas import require_quota
from orgs.roles import Role, may_remove
from orgs.selectors import may_end_membership, member
from orgs.services.invitations import revoke_pending_of
from orgs.services.open_requests import end_answered_requests


@transaction.atomic
def add_member(*, actor: Actor, organization: Organization, user: User, role: Role) -> Membership:
    """For operators; others join by invitation. Raises: NotFound, Conflict, DeactivatedPerson, LimitReached."""
    lock_organization(organization)
    lock_active_person(user)
    if Membership.objects.filter(organization=organization, user=user).exists():
        raise Conflict(sentence("This person is already a member."))
    require_quota(Membership.objects.filter(organization=organization), settings.MEMBERS_PER_ORGANIZATION, "members")
    row = Membership.objects.create(organization=organization, user=user, role=role.value)
    _record(EventType.MEMBER_ADDED, actor, row, role=role.value)
    return row


@transaction.atomic
def change_role(*, actor: User, organization: Organization, user_id: UUID, role: Role) -> Membership:
    """Raises: NotFound, Forbidden, CannotChangeOwnRole; ValueError for owner. Spec: §4.4 · D44"""
    if role is Role.OWNER:
        # Owners are made by `transfer_ownership`.
        raise ValueError("the role owner is not assigned")
    lock_for_change(organization, actor=actor, role=Role.OWNER)
    row = member(organization, str(user_id))
    if row.user_id == actor.pk:
        raise CannotChangeOwnRole
    former, row.role = row.role, role.value
    row.save(update_fields=["role"])
    _record(EventType.MEMBER_ROLE_CHANGED, actor.as_actor(), row, role=role.value, was=former)
    end_answered_requests(organization.id)
    return row


@transaction.atomic
def remove_member(*, actor: User | Actor, organization: Organization, user_id: UUID) -> None:
    """End a membership with its server access, teams, tokens and invitations. Spec: §4.4 · D45, D162 · decisions/0078

    Raises: NotFound; Forbidden if an admin removes an admin or owner; LastOwner. Support staff (`Actor`) may remove
    all but the last owner.
    """
    lock_for_change(organization, actor=actor, role=Role.ADMIN)
    row = member(organization, str(user_id))
    if isinstance(actor, User):
        own = current_membership(organization, actor, role=Role.ADMIN)
        if not may_remove(Role(own.role), Role(row.role), themselves=row.pk == own.pk):
            raise Forbidden(sentence("Only owners can remove admins and owners."))
    themselves = isinstance(actor, User) and row.user_id == actor.pk
    _end_membership(row, actor)
    if not themselves:
        # Earlier invitations no longer admit the person, and those that the person made admit nobody: they might be for
        # accomplices. Leaving by oneself changes neither. Spec: D162
        Removal.objects.update_or_create(
            organization_id=row.organization_id, user_id=row.user_id, defaults={"removed_at": clock.now()}
        )
        revoke_pending_of(actor=actor, organization_id=row.organization_id, created_by_id=row.user_id)


@transaction.atomic
def leave_organization(*, actor: User, organization: Organization) -> None:
    """The actor, of any role, leaves. Raises: NotFound; LastOwner. Spec: D45 · ux.md 3"""
    lock_organization(organization)
    _end_membership(current_membership(organization, actor, role=Role.MEMBER), actor)


@transaction.atomic
def end_membership_again(*, actor: Actor, org_id: UUID, user_id: UUID, ended_at: datetime) -> bool:
    """End a membership that a restored database brought back, also the last owner's; return whether it was there.

    Raises: NotFound for a deleted organization.
    """
    lock_organization(org_id)
    # A membership that began later is another one.
    rows = Membership.objects.select_related("user").filter(organization_id=org_id, user_id=user_id)
    row = rows.filter(joined_at__lte=ended_at).first()
    if row is None:
        return False
    _end(row, actor)
    Removal.objects.update_or_create(organization_id=org_id, user_id=user_id, defaults={"removed_at": ended_at})
    revoke_pending_of(actor=actor, organization_id=org_id, created_by_id=user_id)
    return True


def _end_membership(row: Membership, actor: User | Actor) -> None:
    """Raises: LastOwner. The caller holds the organization's lock."""
    if not may_end_membership(row):
        raise LastOwner(themselves=isinstance(actor, User) and actor.pk == row.user_id)
    if row.role == Role.OWNER.value:
        # While the owner is one: the owners and the person are told.
        tell_owners(OWNER_REMOVED, organization_id=row.organization_id, actor=actor, person=row.user.label)
    _end(row, actor)


def _end(row: Membership, actor: User | Actor) -> None:
    # Tokens that are being stored for the member now are seen by the receivers, or not stored.
    list(Membership.objects.select_for_update().filter(pk=row.pk).values_list("pk"))
    # Receivers revoke tokens and everything else issued in the membership's name.
    events.member_removed.send(sender=Membership, organization_id=row.organization_id, user_id=row.user_id)
    _record(EventType.MEMBER_REMOVED, actor.as_actor(), row, role=row.role)
    row.delete()


def _record(event: EventType, actor: Actor, row: Membership, **facts: str) -> None:
    record_admin(
        event,
        org_id=row.organization_id,
        actor=actor,
        target=row.as_target(),
        metadata=facts,
    )
    # The person's next call in any process loads the new role.
    epochs.bump_on_commit(epochs.subject(str(row.user_id)))
