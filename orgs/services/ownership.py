"""Ownership: another member becomes owner, an owner steps down, or both in one transaction."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from audit.admin_log import record_admin
from audit.event_types import EventType
from gateway.coordination import epochs
from orgs.errors import CannotChangeOwnRole, DeactivatedMember, LastOwner
from orgs.locking import current_membership, lock_for_change
from orgs.models import Membership, Organization, User
from orgs.notices import NEW_OWNER, OWNER_REMOVED, tell_owners
from orgs.roles import Role
from orgs.selectors import may_end_membership, member
from orgs.services.open_requests import end_answered_requests


@transaction.atomic
def transfer_ownership(
    *, actor: User, organization: Organization, user_id: UUID, step_down_to: Role = Role.ADMIN
) -> Membership:
    """The member becomes owner and the actor `step_down_to`; owner: both are owners. Spec: D154

    Raises: NotFound for a non-member; Forbidden if the actor is no longer an owner; CannotChangeOwnRole for the actor;
    DeactivatedMember.
    """
    # Of two owners who transfer at the same time, the lock leaves at least one owner.
    locked = lock_for_change(organization, actor=actor, role=Role.OWNER)
    row = member(locked, str(user_id))
    if row.user_id == actor.pk:
        raise CannotChangeOwnRole
    if not row.user.is_active:
        raise DeactivatedMember
    own = current_membership(locked, actor, role=Role.OWNER)
    ownership = "shared" if step_down_to is Role.OWNER else "transferred"
    _change(row, Role.OWNER, actor, ownership)
    _change(own, step_down_to, actor, ownership)
    tell_owners(NEW_OWNER, organization_id=locked.pk, actor=actor, also=[actor], person=row.user.label)
    end_answered_requests(locked.id)
    return row


@transaction.atomic
def step_down(*, actor: User, organization: Organization, to: Role = Role.ADMIN) -> Membership:
    """Raises: LastOwner; Forbidden if the actor is no longer an owner; ValueError for owner. Spec: D154"""
    if to is Role.OWNER:
        raise ValueError("an owner steps down to admin or member")
    # Of owners who step down at the same time, each sees the others' roles under the lock.
    own = current_membership(lock_for_change(organization, actor=actor, role=Role.OWNER), actor, role=Role.OWNER)
    if not may_end_membership(own):
        raise LastOwner(themselves=True)
    _change(own, to, actor, "given_up")
    return own


def _change(row: Membership, role: Role, actor: User, ownership: str) -> None:
    if row.role == role.value:
        return
    former, row.role = row.role, role.value
    row.save(update_fields=["role"])
    record_admin(
        EventType.MEMBER_ROLE_CHANGED,
        org_id=row.organization_id,
        actor=actor.as_actor(),
        target=row.as_target(),
        metadata={"role": role.value, "was": former, "ownership": ownership},
    )
    if former == Role.OWNER.value:
        person = row.user
        tell_owners(OWNER_REMOVED, organization_id=row.organization_id, actor=actor, also=[person], person=person.label)
    epochs.bump_on_commit(epochs.subject(str(row.user_id)))
