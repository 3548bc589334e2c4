"""The members who gain or lose vendors if the organization's default access changes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from gateway.lib import clock
from orgs import access_rules
from orgs.models import Organization, ServerAccess
from orgs.roles import Role
from orgs.selectors import members


@dataclass(frozen=True, slots=True)
class MemberAccessChange:
    """`vendors`: sorted slugs that the member gains or loses."""

    membership_id: int
    vendors: list[str]


def default_access_changes(
    organization: Organization, *, default_all: bool, connected_vendors: Sequence[str]
) -> list[MemberAccessChange]:
    """Members affected if the default became `default_all`, earliest first; empty if it already is. Spec: D33"""
    if default_all == organization.gives_access_by_default:
        return []
    # Keys only: a page shows fifty of what may be ten thousand people.
    touched = members(organization).filter(role=Role.MEMBER.value).values_list("pk", flat=True)
    granted = _vendors_by_membership(organization)
    found = []
    for membership_id in touched:
        own = granted.get(membership_id, frozenset())
        # The rules of orgs.access_rules decide both cases.
        before, after = (
            vendors_of_member(own, connected_vendors, default_all=default) for default in (not default_all, default_all)
        )
        changed = set(before) ^ set(after)
        if changed:
            found.append(MemberAccessChange(membership_id, sorted(changed)))
    return found


def vendors_of_member(granted: Collection[str], connected_vendors: Sequence[str], *, default_all: bool) -> list[str]:
    """The connected vendors that a person with the role member and this server access may use."""
    held = frozenset(granted)
    return [
        vendor
        for vendor in connected_vendors
        if access_rules.person_may_use_vendor(Role.MEMBER, held, vendor, default_access_all=default_all)
    ]


def _vendors_by_membership(organization: Organization) -> dict[int, frozenset[str]]:
    """Membership id to the vendors granted to the member or to one of its teams."""
    found: dict[int, set[str]] = {}
    rows = ServerAccess.objects.in_force(clock.now()).filter(organization=organization)
    for membership_id, vendor in rows.filter(membership__isnull=False).values_list("membership_id", "vendor"):
        if membership_id is not None:
            found.setdefault(membership_id, set()).add(vendor)
    shared = rows.filter(team__isnull=False).values_list("team__team_memberships__membership_id", "vendor")
    # A team without members has one row without a membership.
    for membership_id, vendor in shared.filter(team__team_memberships__isnull=False):
        found.setdefault(membership_id, set()).add(vendor)
    return {membership_id: frozenset(vendors) for membership_id, vendors in found.items()}
