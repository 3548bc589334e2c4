"""What pages and the hot path read of organizations. Each takes the person or the organization."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime

from django.db.models import Count, F, Q, QuerySet

from gateway.lib import clock, ids
from gateway.lib.errors import NotFound
from orgs.models import (
    Invitation,
    KnownTool,
    Membership,
    Organization,
    ServerAccessGrant,
    Team,
    TeamMembership,
    ToolAllowlist,
    ToolLook,
    User,
)
from orgs.roles import Role

MAX_SEARCH_WORDS = 8


def memberships(user: User) -> QuerySet[Membership]:
    """Where this person belongs, earliest first: the first is the primary organization. Spec: D35"""
    return Membership.objects.select_related("organization").filter(user=user).order_by("joined_at", "id")


def people_who_may(organization: Organization, role: Role) -> Sequence[str]:
    """Names of those who have `role` or more, for "ask Ana or Bo"."""
    wanted = [member.value for member in Role if member.at_least(role)]
    rows = Membership.objects.select_related("user").filter(organization=organization, role__in=wanted)
    rows = rows.filter(user__is_active=True)
    return [row.user.name for row in rows.order_by("joined_at", "id")[:5]]


def membership_row(user_id: uuid.UUID, org_id: uuid.UUID) -> Membership | None:
    """The membership of an active person, for the hot path's snapshot."""
    return (
        Membership.objects.select_related("user", "organization")
        .filter(user_id=user_id, organization_id=org_id, user__is_active=True)
        .first()
    )


def organization(org_id: uuid.UUID) -> Organization | None:
    """The organization's own row, for the hot path's snapshot."""
    return Organization.objects.filter(id=org_id).first()


def team_ids(membership: Membership) -> tuple[uuid.UUID, ...]:
    """The member's teams, oldest team first: the order in which their credentials are tried. Spec: D67"""
    rows = TeamMembership.objects.filter(membership=membership).order_by("team__created_at", "team_id")
    return tuple(rows.values_list("team_id", flat=True))


def teams_by_person(organization: Organization) -> dict[uuid.UUID, list[uuid.UUID]]:
    """Person's id to the same for everybody in the organization; who is in no team is absent. Spec: D67"""
    rows = TeamMembership.objects.filter(team__organization=organization).order_by("team__created_at", "team_id")
    found: dict[uuid.UUID, list[uuid.UUID]] = {}
    for user_id, team_id in rows.values_list("membership__user_id", "team_id"):
        found.setdefault(user_id, []).append(team_id)
    return found


def granted_vendors(membership: Membership, teams: Sequence[uuid.UUID]) -> frozenset[str]:
    """Vendors granted to the member or to one of its teams. Spec: D33"""
    rows = ServerAccessGrant.objects.filter(organization_id=membership.organization_id)
    return frozenset(rows.filter(Q(membership=membership) | Q(team_id__in=teams)).values_list("vendor", flat=True))


def allowlists(org_id: uuid.UUID) -> dict[tuple[str, str], frozenset[str]]:
    """(vendor, role) to the only tools allowed; a pair without a list is absent. Spec: D75"""
    rows = ToolAllowlist.objects.filter(organization_id=org_id).values_list("vendor", "role", "tools")
    return {(vendor, role): frozenset(tools) for vendor, role, tools in rows}


def members(organization: Organization, *, matching: str = "") -> QuerySet[Membership]:
    """Everybody in the organization with their names, earliest first. Spec: §4.4 · D43

    `matching`: only those with each of its words in a name or in the e-mail address.
    """
    rows = Membership.objects.select_related("user").filter(organization=organization)
    columns = ("user__display_name", "user__first_name", "user__last_name", "user__email")
    return rows.filter(_has_words(matching, *columns)).order_by("joined_at", "id")


def member_grants(membership: Membership) -> list[str]:
    """The vendors granted to the member and not through a team, sorted. Spec: §4.5"""
    rows = ServerAccessGrant.objects.filter(organization_id=membership.organization_id, membership=membership)
    return list(rows.order_by("vendor").values_list("vendor", flat=True))


def is_last_owner(membership: Membership) -> bool:
    """Whether the organization would have no owner who can sign in without this member. Spec: D45"""
    if membership.role != Role.OWNER.value:
        return False
    owners = Membership.objects.filter(organization_id=membership.organization_id, role=Role.OWNER.value)
    return not owners.filter(user__is_active=True).exclude(pk=membership.pk).exists()


def teams_by_member(memberships: Sequence[Membership]) -> dict[uuid.UUID, list[str]]:
    """Person's id to the names of their teams, sorted; who is in none is absent."""
    rows = TeamMembership.objects.filter(membership__in=[row.pk for row in memberships]).order_by("team__name", "id")
    found: dict[uuid.UUID, list[str]] = {}
    for user_id, name in rows.values_list("membership__user_id", "team__name"):
        found.setdefault(user_id, []).append(name)
    return found


def member(organization: Organization, user_id: str) -> Membership:
    """One member by the person's id.

    Raises: NotFound, for somebody of another organization as for nobody.   Spec: D4
    """
    found = members(organization).filter(user_id=ids.known_id(user_id)).first()
    if found is None:
        raise NotFound
    return found


def pending_invitations(organization: Organization) -> QuerySet[Invitation]:
    """Those that somebody can still accept, newest first. Spec: §4.4 · D51"""
    return Invitation.objects.filter(organization=organization).pending(clock.now())


def pending_invitation(organization: Organization, invitation_id: uuid.UUID) -> Invitation:
    """One that somebody can still accept, with who made it.

    Raises: NotFound, for another organization's and for one that is over as for none.   Spec: D4
    """
    found = pending_invitations(organization).select_related("created_by").filter(pk=invitation_id).first()
    if found is None:
        raise NotFound
    return found


def teams(organization: Organization, *, matching: str = "") -> QuerySet[Team]:
    """The teams by name, each with `member_count`. Spec: §4.7 · D60

    `matching`: only those with each of its words in the name.
    """
    rows = Team.objects.filter(_has_words(matching, "name"), organization=organization)
    return rows.annotate(member_count=Count("team_memberships")).order_by("name", "id")


def team(organization: Organization, team_id: str) -> Team:
    """One team with its `member_count`.

    Raises: NotFound, for another organization's as for none.   Spec: D4
    """
    found = teams(organization).filter(pk=ids.known_id(team_id)).first()
    if found is None:
        raise NotFound
    return found


def team_members(team: Team) -> QuerySet[TeamMembership]:
    """Who is in a team that was reached through its organization, with their names, earliest first."""
    rows = TeamMembership.objects.select_related("membership__user").filter(team=team)
    return rows.order_by("joined_at", "id")


def vendors_granted_to_teams(organization: Organization) -> dict[uuid.UUID, list[str]]:
    """Team to the sorted slugs of the vendors it was granted; a team without a grant is absent."""
    rows = ServerAccessGrant.objects.filter(organization=organization, team__isnull=False).order_by("vendor")
    found: dict[uuid.UUID, list[str]] = {}
    for team_id, vendor in rows.values_list("team_id", "vendor"):
        if team_id is not None:
            found.setdefault(team_id, []).append(vendor)
    return found


def grants(organization: Organization) -> QuerySet[ServerAccessGrant]:
    """Every grant of the organization, oldest first. Spec: §4.5 · D57"""
    rows = ServerAccessGrant.objects.select_related("membership").filter(organization=organization)
    return rows.order_by("granted_at", "id")


def known_tools(organization: Organization, vendor: str) -> QuerySet[KnownTool]:
    """The vendor's tools as the organization saw them last, by name; those that are gone too, of all lists. Spec: D78

    Their texts stay in the database until a caller asks for them.
    """
    rows = KnownTool.objects.filter(organization=organization, vendor=vendor)
    return rows.defer("seen_definition", "approved_definition").order_by("tool", "credential_scope")


def tool_texts(rows: Sequence[KnownTool]) -> dict[int, tuple[str, str]]:
    """By row: the definitions seen last and approved, "" where none is kept."""
    found = KnownTool.objects.filter(pk__in=[row.pk for row in rows])
    return {
        pk: (seen, agreed) for pk, seen, agreed in found.values_list("pk", "seen_definition", "approved_definition")
    }


def offered_definitions(organization: Organization, vendor: str) -> dict[str, str]:
    """By tool of the general list that is offered: its definition, "" where it is too large to keep. Spec: D78"""
    rows = known_tools(organization, vendor).filter(credential_scope="").exclude(seen_sha256=b"")
    return dict(rows.values_list("tool", "seen_definition"))


def tool_counts(organization: Organization) -> dict[str, tuple[int, int]]:
    """By vendor: how many tools it offers, and how many are not as they were approved. Spec: D78"""
    rows = KnownTool.objects.filter(organization=organization).values("vendor")
    counted = rows.annotate(
        offered=Count("id", filter=~Q(seen_sha256=b"") & Q(credential_scope="")),
        waiting=Count("id", filter=~Q(seen_sha256=F("approved_sha256"))),
    )
    return {row["vendor"]: (row["offered"], row["waiting"]) for row in counted}


def looked_at(organization: Organization, vendor: str) -> datetime | None:
    """When the vendor's tools were compared last, or None."""
    looks = ToolLook.objects.filter(organization=organization, vendor=vendor)
    return looks.order_by("-looked_at").values_list("looked_at", flat=True).first()


def allowlist_rows(organization: Organization, vendor: str) -> QuerySet[ToolAllowlist]:
    """The vendor's lists, by role. Spec: §4.9 · D75"""
    rows = ToolAllowlist.objects.select_related("updated_by").filter(organization=organization, vendor=vendor)
    return rows.order_by("role")


def _has_words(text: str, *columns: str) -> Q:
    """Each of the words of `text` stands in one of the columns; past MAX_SEARCH_WORDS nobody looks."""
    found = Q()
    for word in text.split()[:MAX_SEARCH_WORDS]:
        found &= Q(*((f"{column}__icontains", word) for column in columns), _connector=Q.OR)
    return found
