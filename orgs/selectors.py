"""Queries for pages, the API and the hot path. Each takes the person or the organization."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Avg, Case, Count, F, Q, QuerySet, TextField, Value, When

from gateway.lib import clock, ids
from gateway.lib.rows import grouped, required_row
from orgs.allowed_items import AllowedItems
from orgs.models import (
    AccessRequest,
    Invitation,
    ItemAllowlist,
    KnownTool,
    ManagementToken,
    Membership,
    Organization,
    ServerAccess,
    Team,
    TeamMembership,
    ToolAllowlist,
    ToolSnapshot,
    User,
)
from orgs.roles import Role, may_end

# Bounds the conditions of a search; further words are ignored.
MAX_SEARCH_WORDS = 8
# Columns of a membership that a search for a person reads.
_NAMES = ("user__display_name", "user__first_name", "user__last_name", "user__email")


def memberships(user: User) -> QuerySet[Membership]:
    """Earliest first: the first one is the primary organization. Spec: D35"""
    return Membership.objects.select_related("organization").filter(user=user).order_by("joined_at", "id")


def people_who_may(organization: Organization, role: Role) -> Sequence[str]:
    """Names of up to five active people with `role` or more, earliest members first."""
    wanted = [member.value for member in Role if member.at_least(role)]
    rows = Membership.objects.select_related("user").filter(organization=organization, role__in=wanted)
    rows = rows.filter(user__is_active=True)
    # Five names are enough for a sentence such as "ask Ana or Bo".
    return [row.user.name for row in rows.order_by("joined_at", "id")[:5]]


def membership_row(user_id: uuid.UUID, org_id: uuid.UUID) -> Membership | None:
    """The membership of an active person."""
    return (
        Membership.objects.select_related("user", "organization")
        .filter(user_id=user_id, organization_id=org_id, user__is_active=True)
        .first()
    )


def organization(org_id: uuid.UUID) -> Organization | None:
    return Organization.objects.filter(id=org_id).first()


def management_tokens(user: User) -> QuerySet[ManagementToken]:
    """The person's own, newest first. Expired ones stay listed for a while."""
    rows = ManagementToken.objects.filter(membership__user=user).select_related("membership__organization")
    return rows.order_by("-created_at", "id")


def management_token(user: User, token_id: uuid.UUID) -> ManagementToken:
    """Raises: NotFound, also for another person's."""
    return required_row(management_tokens(user).filter(pk=token_id))


def team_ids(membership: Membership) -> tuple[uuid.UUID, ...]:
    """Oldest team first: the order in which team credentials are tried. Spec: D67"""
    rows = TeamMembership.objects.filter(membership=membership).order_by("team__created_at", "team_id")
    return tuple(rows.values_list("team_id", flat=True))


class InTeam(NamedTuple):
    membership_id: int
    team_id: uuid.UUID
    team_name: str


def in_teams(memberships: Sequence[Membership]) -> list[InTeam]:
    """The teams of these members, oldest team first. Spec: D67"""
    rows = TeamMembership.objects.filter(membership__in=memberships).order_by("team__created_at", "team_id")
    return [InTeam(*row) for row in rows.values_list("membership_id", "team_id", "team__name")]


def teams_by_person(organization: Organization) -> dict[uuid.UUID, list[uuid.UUID]]:
    """User id to team ids, oldest team first; people without a team are absent. Spec: D67"""
    rows = TeamMembership.objects.filter(team__organization=organization).order_by("team__created_at", "team_id")
    return grouped(rows.values_list("membership__user_id", "team_id"))


def granted_vendors(membership: Membership, teams: Sequence[uuid.UUID]) -> frozenset[str]:
    """Vendors in the server access of the member or of one of its teams. Spec: D33"""
    rows = ServerAccess.objects.in_force(clock.now()).filter(organization_id=membership.organization_id)
    return frozenset(rows.filter(Q(membership=membership) | Q(team_id__in=teams)).values_list("vendor", flat=True))


def allowlists(org_id: uuid.UUID) -> dict[tuple[str, str], frozenset[str]]:
    """(vendor, role) to the allowed tools; a pair without a list is absent. Spec: D75"""
    rows = ToolAllowlist.objects.filter(organization_id=org_id).values_list("vendor", "role", "tools")
    return {(vendor, role): frozenset(tools) for vendor, role, tools in rows}


def item_lists(org_id: uuid.UUID) -> dict[tuple[str, str, str], AllowedItems]:
    """(vendor, role, type) to the allowed entries; absent without a list. docs/decisions/0115"""
    rows = ItemAllowlist.objects.filter(organization_id=org_id).values_list("vendor", "role", "kind", "entries")
    return {(vendor, role, kind): AllowedItems.of(kind, entries) for vendor, role, kind, entries in rows}


def members(organization: Organization, *, matching: str = "", named: str | None = None) -> QuerySet[Membership]:
    """Earliest first. `matching`: each of its words must be in a name or the e-mail address. Spec: §4.4 · D43

    `named`: those whose display name or e-mail address is this.
    """
    rows = Membership.objects.select_related("user").filter(organization=organization)
    if named is not None:
        rows = rows.filter(Q(user__display_name=named) | Q(user__email__iexact=named))
    return rows.filter(_has_words(matching, *_NAMES)).order_by("joined_at", "id")


def member_vendors(membership: Membership) -> list[str]:
    """The member's direct server access, sorted. Spec: §4.5"""
    rows = ServerAccess.objects.in_force(clock.now())
    rows = rows.filter(organization_id=membership.organization_id, membership=membership)
    return list(rows.order_by("vendor").values_list("vendor", flat=True))


def may_end_membership(membership: Membership) -> bool:
    """Asks `orgs.roles.may_end` about a row."""
    owners = Membership.objects.filter(organization_id=membership.organization_id, role=Role.OWNER.value)
    # A deactivated owner cannot sign in and does not count.
    others = owners.filter(user__is_active=True).exclude(pk=membership.pk)
    return may_end(Role(membership.role), other_owners=others.exists())


def teams_by_member(memberships: Sequence[Membership]) -> dict[uuid.UUID, list[str]]:
    """User id to sorted team names; people without a team are absent."""
    rows = TeamMembership.objects.filter(membership__in=[row.pk for row in memberships]).order_by("team__name", "id")
    return grouped(rows.values_list("membership__user_id", "team__name"))


def teams_of(membership: Membership) -> list[Team]:
    """By name."""
    rows = Team.objects.filter(organization_id=membership.organization_id, team_memberships__membership=membership)
    return list(rows.order_by("name", "id"))


def member(organization: Organization, user_id: str) -> Membership:
    """Raises: NotFound, also for a person of another organization. Spec: D4"""
    return required_row(members(organization).filter(user_id=ids.known_id(user_id)))


def pending_invitations(organization: Organization) -> QuerySet[Invitation]:
    """Invitations that can still be accepted, newest first. Spec: §4.4 · D51"""
    return Invitation.objects.filter(organization=organization).pending(clock.now())


def pending_invitation(organization: Organization, invitation_id: uuid.UUID) -> Invitation:
    """Raises: NotFound, also for another organization's or a finished invitation. Spec: D4"""
    return required_row(pending_invitations(organization).select_related("created_by").filter(pk=invitation_id))


def teams(organization: Organization, *, matching: str = "", named: str | None = None) -> QuerySet[Team]:
    """By name, each with `member_count`. `matching`: each of its words must be in the name. Spec: §4.7 · D60"""
    rows = Team.objects.filter(_has_words(matching, "name"), organization=organization)
    if named is not None:
        rows = rows.filter(name=named)
    return rows.annotate(member_count=Count("team_memberships")).order_by("name", "id")


def team(organization: Organization, team_id: str) -> Team:
    """The team with `member_count`. Raises: NotFound, also for another organization's team. Spec: D4"""
    return required_row(teams(organization).filter(pk=ids.known_id(team_id)))


def team_members(team: Team, *, matching: str = "") -> QuerySet[TeamMembership]:
    """Earliest first; `matching` as for `members`. The caller has reached the team through its organization."""
    rows = TeamMembership.objects.select_related("membership__user").filter(team=team)
    columns = [f"membership__{name}" for name in _NAMES]
    return rows.filter(_has_words(matching, *columns)).order_by("joined_at", "id")


def team_subjects(team: Team) -> list[str]:
    """The subjects of its members' calls in the log. The caller has reached the team through its organization."""
    return [str(user_id) for user_id in team_members(team).values_list("membership__user_id", flat=True)]


def server_access_by_team(organization: Organization) -> dict[uuid.UUID, list[str]]:
    """Team id to sorted slugs; a team without server access is absent."""
    rows = ServerAccess.objects.in_force(clock.now())
    rows = rows.filter(organization=organization, team__isnull=False).order_by("vendor")
    return grouped((team_id, vendor) for team_id, vendor in rows.values_list("team_id", "vendor") if team_id)


def server_access(organization: Organization) -> QuerySet[ServerAccess]:
    """Rows in force, oldest first. Spec: §4.5 · D57"""
    rows = ServerAccess.objects.in_force(clock.now()).select_related("membership").filter(organization=organization)
    return rows.order_by("granted_at", "id")


def waiting_requests(
    organization: Organization, connected_vendors: Collection[str], *, of: User | None = None
) -> QuerySet[AccessRequest]:
    """Requests for a connected vendor that wait for a decision, oldest first; `of` one person only. Spec: D169"""
    rows = _access_requests(organization, of).filter(state=AccessRequest.State.WAITING, vendor__in=connected_vendors)
    return rows.order_by("created_at", "id")


def decided_requests(organization: Organization, *, of: User | None = None) -> QuerySet[AccessRequest]:
    """Newest decision first; `of` one person only. Spec: D169"""
    rows = _access_requests(organization, of).exclude(state=AccessRequest.State.WAITING)
    return rows.order_by("-decided_at", "id")


def requests_of(membership: Membership) -> QuerySet[AccessRequest]:
    """The member's requests, one at most for each vendor. Spec: D169"""
    return AccessRequest.objects.select_related("decided_by").filter(membership=membership).order_by("vendor")


def count_of_waiting_requests(organization: Organization, vendors: QuerySet[Any, str]) -> int:
    """The requests that wait for one of the vendors. Spec: D169"""
    rows = _access_requests(organization, None).filter(state=AccessRequest.State.WAITING, vendor__in=vendors)
    return rows.count()


def _access_requests(organization: Organization, of: User | None) -> QuerySet[AccessRequest]:
    rows = AccessRequest.objects.select_related("membership__user", "decided_by")
    # A deactivated person's requests wait with the person.
    rows = rows.filter(organization=organization, membership__user__is_active=True)
    return rows if of is None else rows.filter(membership__user=of)


def known_tools(organization: Organization, vendor: str) -> QuerySet[KnownTool]:
    """The vendor's tools as last seen, by name, of all lists; includes removed ones. Spec: D78"""
    rows = KnownTool.objects.filter(organization=organization, vendor=vendor)
    # The texts stay in the database until a caller asks for them.
    return rows.defer("seen_definition", "approved_definition").order_by("tool", "credential_scope")


def known_tools_with_general_texts(organization: Organization, vendor: str) -> QuerySet[Any]:
    """`known_tools`, each with `general_text`: its definition on the general list; "" if it is on another list."""
    general = Case(When(credential_scope="", then=F("seen_definition")), default=Value(""), output_field=TextField())
    return known_tools(organization, vendor).annotate(general_text=general)


def tool_texts(rows: Sequence[KnownTool]) -> dict[int, tuple[str, str]]:
    """Row id to (last seen, approved) definition; "" if the text is not kept."""
    found = KnownTool.objects.filter(pk__in=[row.pk for row in rows])
    return {
        pk: (seen, agreed) for pk, seen, agreed in found.values_list("pk", "seen_definition", "approved_definition")
    }


def offered_definitions(organization: Organization, vendor: str) -> dict[str, str]:
    """Tool name to definition, for the general list; "" if it is too large to keep. Spec: D78"""
    rows = known_tools(organization, vendor).filter(credential_scope="").exclude(seen_sha256=b"")
    return dict(rows.values_list("tool", "seen_definition"))


def offered_definitions_by_vendor(organization: Organization) -> dict[str, dict[str, str]]:
    """Vendor to `offered_definitions`."""
    rows = KnownTool.objects.filter(organization=organization, credential_scope="").exclude(seen_sha256=b"")
    found: dict[str, dict[str, str]] = {}
    for vendor, tool, definition in rows.values_list("vendor", "tool", "seen_definition"):
        found.setdefault(vendor, {})[tool] = definition
    return found


def offered_tools_named(
    organization: Organization, words: str, *, vendors: Collection[str] | None = None
) -> QuerySet[KnownTool]:
    """The tools of the general lists with each of the words in the name of tool or vendor, by vendor and name.

    `vendors`: only theirs.
    """
    rows = KnownTool.objects.filter(_has_words(words, "tool", "vendor"), organization=organization)
    if vendors is not None:
        rows = rows.filter(vendor__in=vendors)
    rows = rows.filter(credential_scope="").exclude(seen_sha256=b"")
    return rows.only("vendor", "tool").order_by("vendor", "tool")


def tool_counts(organization: Organization) -> dict[str, tuple[int, int]]:
    """Vendor to (number of offered tools, number of tools that differ from the approved ones). Spec: D78"""
    rows = KnownTool.objects.filter(organization=organization).values("vendor")
    counted = rows.annotate(
        offered=Count("id", filter=~Q(seen_sha256=b"") & Q(credential_scope="")),
        # Differs from the approved definition: new, changed or removed since.
        waiting=Count("id", filter=~Q(seen_sha256=F("approved_sha256"))),
    )
    return {row["vendor"]: (row["offered"], row["waiting"]) for row in counted}


def offered_tools(organization: Organization) -> dict[str, frozenset[str]]:
    """Vendor to the names on its general list. Spec: D78"""
    rows = KnownTool.objects.filter(organization=organization, credential_scope="").exclude(seen_sha256=b"")
    found = grouped(rows.values_list("vendor", "tool"))
    return {vendor: frozenset(tools) for vendor, tools in found.items()}


def looked_at(organization: Organization, vendor: str) -> datetime | None:
    """When the vendor's tools were last compared."""
    snapshots = ToolSnapshot.objects.filter(organization=organization, vendor=vendor)
    return snapshots.order_by("-looked_at").values_list("looked_at", flat=True).first()


def mean_tool_list_bytes(organization: Organization) -> dict[str, float]:
    """Vendor to the mean size of its tool lists under the organization's credentials. Spec: D138"""
    rows = ToolSnapshot.objects.filter(organization=organization, list_bytes__gt=0).values_list("vendor")
    return dict(rows.annotate(Avg("list_bytes")))


def allowlist_rows(organization: Organization, vendor: str) -> QuerySet[ToolAllowlist]:
    """By role. Spec: §4.9 · D75"""
    rows = ToolAllowlist.objects.select_related("updated_by").filter(organization=organization, vendor=vendor)
    return rows.order_by("role")


def item_list_rows(organization: Organization, vendor: str) -> QuerySet[ItemAllowlist]:
    """By role and type. docs/decisions/0115"""
    rows = ItemAllowlist.objects.select_related("updated_by").filter(organization=organization, vendor=vendor)
    return rows.order_by("role", "kind")


def _has_words(text: str, *columns: str) -> Q:
    found = Q()
    for word in text.split()[:MAX_SEARCH_WORDS]:
        found &= Q(*((f"{column}__icontains", word) for column in columns), _connector=Q.OR)
    return found
