"""Transfer of ownership: another member becomes owner and the owner steps down, in one transaction."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from audit.admin_log import record_admin
from audit.event_types import EventType
from gateway.coordination import epochs
from orgs.errors import CannotChangeOwnRole, DeactivatedMember
from orgs.locking import current_membership, lock_for_change
from orgs.models import Membership, Organization, User
from orgs.roles import Role
from orgs.selectors import member


@transaction.atomic
def transfer_ownership(
    *, actor: User, organization: Organization, user_id: UUID, step_down_to: Role = Role.ADMIN
) -> Membership:
    """The member becomes owner and the actor `step_down_to`. Spec: D154

    Raises: NotFound for a non-member; Forbidden if the actor is no longer an owner; CannotChangeOwnRole for the actor;
    DeactivatedMember; ValueError if `step_down_to` is owner.
    """
    if step_down_to is Role.OWNER:
        raise ValueError("step_down_to must be admin or member: no owner")
    # Of two owners who transfer at the same time, the lock leaves at least one owner.
    locked = lock_for_change(organization, actor=actor, role=Role.OWNER)
    row = member(locked, str(user_id))
    if row.user_id == actor.pk:
        raise CannotChangeOwnRole
    if not row.user.is_active:
        raise DeactivatedMember
    own = current_membership(locked, actor, role=Role.OWNER)
    _change(row, Role.OWNER, actor)
    _change(own, step_down_to, actor)
    return row


def _change(row: Membership, role: Role, actor: User) -> None:
    if row.role == role.value:
        return
    former, row.role = row.role, role.value
    row.save(update_fields=["role"])
    record_admin(
        EventType.MEMBER_ROLE_CHANGED,
        org_id=row.organization_id,
        actor=actor.as_actor(),
        target=row.as_target(),
        metadata={"role": role.value, "was": former, "ownership": "transferred"},
    )
    epochs.bump_on_commit(epochs.subject(str(row.user_id)))
