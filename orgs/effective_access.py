"""Why a member may use which vendor: every reason, not only the first. Spec: §4.5 · D33, D58"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from orgs.models import Membership, ServerAccessGrant, TeamMembership
from orgs.roles import Role

Source = Literal["role", "default", "direct", "team"]
_ORDER: tuple[Source, ...] = ("role", "default", "direct", "team")


@dataclass(frozen=True, slots=True)
class Access:
    """One reason for one vendor. `team_id` and `granted_at` are None where the source has none."""

    vendor: str
    source: Source
    team_id: UUID | None = None
    granted_at: datetime | None = None


def effective_access(membership: Membership, connected_vendors: Sequence[str]) -> list[Access]:
    """The member's vendors by slug. Role and default reach exactly the connected ones; a grant also waits for one."""
    found: list[Access] = []
    if membership.has_role(Role.ADMIN):
        found += [Access(vendor, "role") for vendor in connected_vendors]
    elif membership.organization.gives_access_by_default:
        found += [Access(vendor, "default") for vendor in connected_vendors]
    rows = ServerAccessGrant.objects.filter(organization_id=membership.organization_id)
    own = rows.filter(membership=membership)
    found += [Access(grant.vendor, "direct", granted_at=grant.granted_at) for grant in own]
    team_ids = TeamMembership.objects.filter(membership=membership).values_list("team_id", flat=True)
    shared = rows.filter(team_id__in=list(team_ids))
    found += [Access(grant.vendor, "team", grant.team_id, grant.granted_at) for grant in shared]
    return sorted(found, key=lambda each: (each.vendor, _ORDER.index(each.source), str(each.team_id)))
