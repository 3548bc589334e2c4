"""A new member gets the role, teams and vendors of the invitation, as far as the inviter may still give them."""

from __future__ import annotations

from uuid import UUID

from audit.admin_log import record_admin
from audit.event_types import EventType
from gateway.catalog import registry
from orgs.models import Invitation, Membership, Organization, Team
from orgs.roles import Role
from orgs.selectors import membership_row
from orgs.services.server_access import add_member_vendor
from orgs.services.teams import add_team_member


def give_at_joining(invitation: Invitation, joined: Membership) -> None:
    """The caller holds the organization's lock. Deleted teams and vendors that left the catalog are skipped."""
    author = invitation.created_by
    if author is None or not (invitation.team_ids or invitation.vendors or invitation.role != Role.MEMBER.value):
        return
    # An author who left, or was demoted, gives nothing that only the former role could.
    standing = membership_row(author.pk, invitation.organization_id)
    if standing is None or not standing.has_role(Role.ADMIN):
        return
    organization = joined.organization
    if invitation.role == Role.ADMIN.value and standing.has_role(Role.OWNER):
        _make_admin(joined, standing)
    for team_id in _teams_left(organization, invitation):
        add_team_member(actor=author, organization=organization, team_id=team_id, user_id=joined.user_id)
    known = registry.load()
    for vendor in (each for each in invitation.vendors if each in known):
        add_member_vendor(actor=author, organization=organization, user_id=joined.user_id, vendor=vendor)


def _make_admin(joined: Membership, standing: Membership) -> None:
    former, joined.role = joined.role, Role.ADMIN.value
    joined.save(update_fields=["role"])
    record_admin(
        EventType.MEMBER_ROLE_CHANGED,
        org_id=joined.organization_id,
        actor=standing.user.as_actor(),
        target=joined.as_target(),
        metadata={"role": joined.role, "was": former},
    )


def _teams_left(organization: Organization, invitation: Invitation) -> list[UUID]:
    rows = Team.objects.filter(organization=organization, pk__in=invitation.team_ids)
    return list(rows.order_by("name", "id").values_list("pk", flat=True))
