"""Every reason why a member may use a vendor. Spec: §4.5 · D33, D58"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from django.db.models import Q

from gateway.lib import clock
from gateway.lib.rows import grouped
from gateway.lib.sentences import sentence
from orgs import selectors
from orgs.models import Membership, ServerAccess
from orgs.roles import Role
from orgs.selectors import InTeam

Source = Literal["role", "default", "direct", "team"]
_WORDS = {
    "role": sentence("as admin or owner"),
    "default": sentence("by default"),
    "direct": sentence("directly"),
}
# Order of the reasons of one vendor in answers.
_ORDER: tuple[Source, ...] = ("role", "default", "direct", "team")


@dataclass(frozen=True, slots=True)
class AccessReason:
    """One reason for one vendor. Values that the source does not have are None; so is the end of endless access."""

    vendor: str
    source: Source
    team_id: UUID | None = None
    team_name: str = ""
    granted_at: datetime | None = None
    expires_at: datetime | None = None

    def in_words(self) -> str:
        """The reason as pages word it."""
        if self.team_id is not None:
            return sentence("through team %(team)s", team=self.team_name)
        return _WORDS[self.source]


def effective_server_access(membership: Membership, connected_vendors: Sequence[str]) -> list[AccessReason]:
    """The reasons by slug."""
    return effective_server_access_of([membership], connected_vendors)[membership.pk]


def effective_server_access_of(
    memberships: Sequence[Membership],
    connected_vendors: Sequence[str],
    *,
    vendor: str | None = None,
    in_teams: Sequence[InTeam] | None = None,
) -> dict[int, list[AccessReason]]:
    """Membership id to reasons, for members of one organization; the number of queries is fixed.

    `vendor`: reasons for it only. `in_teams`: the members' teams, if they are loaded already.
    """
    if vendor is not None:
        connected_vendors = [slug for slug in connected_vendors if slug == vendor]
    if in_teams is None:
        in_teams = selectors.in_teams(memberships)
    granted = _granted(memberships, in_teams, vendor)
    found = {}
    for membership in memberships:
        reasons = [*_by_role_or_default(membership, connected_vendors), *granted[membership.pk]]
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


def _granted(
    memberships: Sequence[Membership], in_teams: Sequence[InTeam], vendor: str | None
) -> dict[int, list[AccessReason]]:
    """Membership id to the access of the member itself and of its teams."""
    members_of = grouped((each.team_id, each) for each in in_teams)
    rows = ServerAccess.objects.in_force(clock.now())
    rows = rows.filter(Q(membership__in=memberships) | Q(team__in=list(members_of)))
    found: dict[int, list[AccessReason]] = defaultdict(list)
    for row in rows if vendor is None else rows.filter(vendor=vendor):
        moments = (row.granted_at, row.expires_at)
        if row.membership_id is not None:
            found[row.membership_id].append(AccessReason(row.vendor, "direct", None, "", *moments))
        elif row.team_id is not None:
            for each in members_of[row.team_id]:
                reason = AccessReason(row.vendor, "team", row.team_id, each.team_name, *moments)
                found[each.membership_id].append(reason)
    return found
