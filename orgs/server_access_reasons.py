"""Every reason why a member may use a vendor. Spec: §4.5 · D33, D58"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from orgs.models import Membership, ServerAccess, TeamMembership
from orgs.roles import Role

Source = Literal["role", "default", "direct", "team"]
# Order of the reasons of one vendor in answers.
_ORDER: tuple[Source, ...] = ("role", "default", "direct", "team")


@dataclass(frozen=True, slots=True)
class AccessReason:
    """One reason for one vendor. `team_id` and `granted_at` are None if the source has none."""

    vendor: str
    source: Source
    team_id: UUID | None = None
    granted_at: datetime | None = None


def effective_server_access(membership: Membership, connected_vendors: Sequence[str]) -> list[AccessReason]:
    """The reasons by slug."""
    return effective_server_access_of([membership], connected_vendors)[membership.pk]


def effective_server_access_of(
    memberships: Sequence[Membership], connected_vendors: Sequence[str]
) -> dict[int, list[AccessReason]]:
    """Membership id to reasons, for members of one organization; the number of queries is fixed."""
    own, shared = _own_access(memberships), _team_access(memberships)
    found = {}
    for membership in memberships:
        reasons = [*_by_role_or_default(membership, connected_vendors), *own[membership.pk], *shared[membership.pk]]
        found[membership.pk] = sorted(
            reasons, key=lambda each: (each.vendor, _ORDER.index(each.source), str(each.team_id))
        )
    return found


def _by_role_or_default(membership: Membership, connected_vendors: Sequence[str]) -> Iterable[AccessReason]:
    # Role and default cover connected vendors only; server access may precede the connection.
    if membership.has_role(Role.ADMIN):
        return [AccessReason(vendor, "role") for vendor in connected_vendors]
    if membership.organization.gives_access_by_default:
        return [AccessReason(vendor, "default") for vendor in connected_vendors]
    return []


def _own_access(memberships: Sequence[Membership]) -> dict[int, list[AccessReason]]:
    found: dict[int, list[AccessReason]] = defaultdict(list)
    for row in ServerAccess.objects.filter(membership__in=memberships):
        if row.membership_id is not None:
            found[row.membership_id].append(AccessReason(row.vendor, "direct", granted_at=row.granted_at))
    return found


def _team_access(memberships: Sequence[Membership]) -> dict[int, list[AccessReason]]:
    members_of: dict[UUID, list[int]] = defaultdict(list)
    rows = TeamMembership.objects.filter(membership__in=memberships)
    for team_id, membership_id in rows.values_list("team_id", "membership_id"):
        members_of[team_id].append(membership_id)
    found: dict[int, list[AccessReason]] = defaultdict(list)
    for row in ServerAccess.objects.filter(team__in=list(members_of)):
        if row.team_id is not None:
            for membership_id in members_of[row.team_id]:
                found[membership_id].append(AccessReason(row.vendor, "team", row.team_id, row.granted_at))
    return found
