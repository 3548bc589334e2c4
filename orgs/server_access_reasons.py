"""Every reason why a member may use a vendor. Spec: §4.5 · D33, D58"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from django.db.models import QuerySet

from gateway.lib import clock
from gateway.lib.sentences import sentence
from orgs.models import Membership, ServerAccess, Team, TeamMembership
from orgs.roles import Role

Source = Literal["role", "default", "direct", "team"]
_WORDS = {
    "role": sentence("as admin or owner"),
    "default": sentence("by default"),
    "direct": sentence("directly"),
    "team": sentence("through a team"),
}
# Order of the reasons of one vendor in answers.
_ORDER: tuple[Source, ...] = ("role", "default", "direct", "team")


@dataclass(frozen=True, slots=True)
class AccessReason:
    """One reason for one vendor. Values that the source does not have are None; so is the end of endless access."""

    vendor: str
    source: Source
    team_id: UUID | None = None
    granted_at: datetime | None = None
    expires_at: datetime | None = None

    def in_words(self, teams: Mapping[UUID, Team]) -> str:
        """The reason as pages word it. `teams`: by id, those of the reasons."""
        if self.team_id is not None:
            if self.team_id not in teams:
                return _WORDS["team"]
            return sentence("through team %(team)s", team=teams[self.team_id].name)
        return _WORDS[self.source]


def effective_server_access(membership: Membership, connected_vendors: Sequence[str]) -> list[AccessReason]:
    """The reasons by slug."""
    return effective_server_access_of([membership], connected_vendors)[membership.pk]


def effective_server_access_of(
    memberships: Sequence[Membership], connected_vendors: Sequence[str], *, vendor: str | None = None
) -> dict[int, list[AccessReason]]:
    """Membership id to reasons, for members of one organization; the number of queries is fixed.

    `vendor`: reasons for it only.
    """
    if vendor is not None:
        connected_vendors = [slug for slug in connected_vendors if slug == vendor]
    rows = ServerAccess.objects.in_force(clock.now())
    rows = rows if vendor is None else rows.filter(vendor=vendor)
    own, shared = _own_access(rows, memberships), _team_access(rows, memberships)
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


def _own_access(rows: QuerySet[ServerAccess], memberships: Sequence[Membership]) -> dict[int, list[AccessReason]]:
    found: dict[int, list[AccessReason]] = defaultdict(list)
    for row in rows.filter(membership__in=memberships):
        if row.membership_id is not None:
            reason = AccessReason(row.vendor, "direct", granted_at=row.granted_at, expires_at=row.expires_at)
            found[row.membership_id].append(reason)
    return found


def _team_access(rows: QuerySet[ServerAccess], memberships: Sequence[Membership]) -> dict[int, list[AccessReason]]:
    members_of: dict[UUID, list[int]] = defaultdict(list)
    in_teams = TeamMembership.objects.filter(membership__in=memberships)
    for team_id, membership_id in in_teams.values_list("team_id", "membership_id"):
        members_of[team_id].append(membership_id)
    found: dict[int, list[AccessReason]] = defaultdict(list)
    for row in rows.filter(team__in=list(members_of)):
        if row.team_id is not None:
            for membership_id in members_of[row.team_id]:
                reason = AccessReason(row.vendor, "team", row.team_id, row.granted_at, row.expires_at)
                found[membership_id].append(reason)
    return found
