"""What members gain or lose when a rule about all of them changes: the rules of orgs.grants, asked for both cases."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from orgs import grants
from orgs.models import Organization, ServerAccessGrant, TeamMembership
from orgs.roles import Role
from orgs.selectors import members


@dataclass(frozen=True, slots=True)
class AccessChange:
    """One membership by its key, and the slugs of the vendors that the change gives or takes, sorted."""

    membership_id: int
    vendors: list[str]


def default_access_changes(
    organization: Organization, *, default_all: bool, connected_vendors: Sequence[str]
) -> list[AccessChange]:
    """Whom it touches if the default became `default_all`, earliest member first; nobody when it is so already.

    Spec: D33
    """
    if default_all == organization.gives_access_by_default:
        return []
    # Keys only: a page shows fifty of what may be ten thousand people.
    touched = members(organization).filter(role=Role.MEMBER.value).values_list("pk", flat=True)
    granted = _granted(organization)
    found = []
    for membership_id in touched:
        own = granted.get(membership_id, frozenset())
        before, after = (
            vendors_of_member(own, connected_vendors, default_all=default) for default in (not default_all, default_all)
        )
        changed = set(before) ^ set(after)
        if changed:
            found.append(AccessChange(membership_id, sorted(changed)))
    return found


def vendors_of_member(granted: Collection[str], connected_vendors: Sequence[str], *, default_all: bool) -> list[str]:
    """The connected vendors that somebody with the role member and these grants may use."""
    held = frozenset(granted)
    return [
        vendor
        for vendor in connected_vendors
        if grants.person_may_use_vendor(Role.MEMBER, held, vendor, default_access_all=default_all)
    ]


def _granted(organization: Organization) -> dict[int, frozenset[str]]:
    """Membership to the vendors granted to it or to one of its teams."""
    found: dict[int, set[str]] = {}
    own = ServerAccessGrant.objects.filter(organization=organization, membership__isnull=False)
    for membership_id, vendor in own.values_list("membership_id", "vendor"):
        if membership_id is not None:
            found.setdefault(membership_id, set()).add(vendor)
    shared = TeamMembership.objects.filter(team__organization=organization, team__server_access_grants__isnull=False)
    for membership_id, vendor in shared.values_list("membership_id", "team__server_access_grants__vendor"):
        found.setdefault(membership_id, set()).add(vendor)
    return {membership_id: frozenset(vendors) for membership_id, vendors in found.items()}
