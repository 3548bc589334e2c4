"""The vendors that one member may use, by the rules that decide calls. Spec: D33, D67"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from credentials.selectors import CredentialSummary, connected_among
from orgs.access_rules import person_may_use_vendor
from orgs.models import Membership
from orgs.roles import Role
from orgs.selectors import granted_vendors, team_ids


@dataclass(frozen=True, slots=True)
class OwnVendors:
    """Slugs, sorted. `usable`: given, and with credentials that the member's calls can use: those of `serving`."""

    connected: list[str]
    given: list[str]
    usable: list[str]
    serving: frozenset[UUID]


def own_vendors(membership: Membership, credentials: Sequence[CredentialSummary]) -> OwnVendors:
    """`credentials`: all of the membership's organization."""
    teams = team_ids(membership)
    role, default_all = Role(membership.role), membership.organization.gives_access_by_default
    granted = granted_vendors(membership, teams)
    connected = connected_among(credentials)
    given = [slug for slug in connected if person_may_use_vendor(role, granted, slug, default_access_all=default_all)]
    serving = [row for row in credentials if row.serves(teams)]
    served = {row.vendor for row in serving}
    usable = [slug for slug in given if slug in served]
    return OwnVendors(connected, given, usable, frozenset(row.id for row in serving))
