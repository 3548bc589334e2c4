"""Reads and actions of staff, in the admin log of each organization that they touch: its owner sees them there."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from django.db import transaction

from audit.actor import Actor, Target
from audit.admin_log import record_admin
from audit.event_types import EventType
from audit.models import AdminAuditEntry
from gateway.lib import clock
from gateway.lib.ids import first_log_id_at
from orgs.locking import lock_organization
from orgs.models import User

# Further reads of one organization by one staff member are told by the row of the first.
READS_ARE_ONE_FOR = timedelta(minutes=30)


def staff_actor(staff: User) -> Actor:
    # Members do not know the person, so the label says support staff.
    return Actor(id=str(staff.pk), label=f"{staff.label} (support staff)")


def record_reading(*, staff: User, org_ids: Sequence[UUID]) -> None:
    """Each of the organizations has a row of this staff member that is at most READS_ARE_ONE_FOR old.

    Raises: NotFound for an organization that was deleted meanwhile.
    """
    actor = staff_actor(staff)
    for org_id in sorted(set(org_ids) - _recently_read(actor, org_ids)):
        with transaction.atomic():
            locked = lock_organization(org_id)
            # Another request of the same person may have held the lock.
            if not _recently_read(actor, [org_id]):
                record_admin(EventType.SUPPORT_ORGANIZATION_READ, org_id=org_id, actor=actor, target=locked.as_target())


def record_reason(*, actor: Actor, org_id: UUID, target: Target, action: str, reason: str) -> None:
    """Beside the rows that the services write. Raises: RuntimeError outside a transaction."""
    facts = {"action": action, "reason": reason}
    record_admin(EventType.SUPPORT_ACTED, org_id=org_id, actor=actor, target=target, metadata=facts)


def _recently_read(actor: Actor, org_ids: Sequence[UUID]) -> set[UUID]:
    rows = AdminAuditEntry.objects.filter(
        org_id__in=org_ids,
        actor_id=actor.id,
        event_type=EventType.SUPPORT_ORGANIZATION_READ.value,
        id__gte=first_log_id_at(clock.now() - READS_ARE_ONE_FOR),
    )
    return set(rows.values_list("org_id", flat=True))
