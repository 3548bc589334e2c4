"""Many vendor grants at once, as a matrix is saved: only what was toggled changes, all of it or nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from django.db import transaction

from orgs.locking import lock_organization
from orgs.models import Membership, Organization, Team, User
from orgs.services.server_access import grant_member, grant_team, revoke_member, revoke_team

Cell = tuple[UUID, str]  # a person's or team's id, and a vendor's slug


@dataclass(frozen=True, slots=True)
class Toggled:
    """How many grants were asked for and given or taken, and how many rows had gone meanwhile."""

    granted: int
    revoked: int
    gone: int


@transaction.atomic
def change_member_grants(
    *, actor: User, organization: Organization, grants: Iterable[Cell], revokes: Iterable[Cell]
) -> Toggled:
    """The members have, or no longer have, these grants of their own; whoever left meanwhile is left out.

    What others changed meanwhile stays, unless it is one of these cells.
    Raises: NotFound for an unknown vendor; Forbidden.   Spec: §4.5 · D59
    """
    lock_organization(organization)
    given, taken = sorted(set(grants)), sorted(set(revokes))
    asked = {user_id for user_id, _ in (*given, *taken)}
    rows = Membership.objects.filter(organization=organization, user_id__in=asked)
    here = set(rows.values_list("user_id", flat=True))
    for user_id, vendor in given:
        if user_id in here:
            grant_member(actor=actor, organization=organization, user_id=user_id, vendor=vendor)
    for user_id, vendor in taken:
        if user_id in here:
            revoke_member(actor=actor, organization=organization, user_id=user_id, vendor=vendor)
    return _toggled(given, taken, here)


@transaction.atomic
def change_team_grants(
    *, actor: User, organization: Organization, grants: Iterable[Cell], revokes: Iterable[Cell]
) -> Toggled:
    """The same for teams.

    Raises: NotFound for an unknown vendor; Forbidden.   Spec: §4.5 · D59
    """
    lock_organization(organization)
    given, taken = sorted(set(grants)), sorted(set(revokes))
    asked = {team_id for team_id, _ in (*given, *taken)}
    here = set(Team.objects.filter(organization=organization, pk__in=asked).values_list("pk", flat=True))
    for team_id, vendor in given:
        if team_id in here:
            grant_team(actor=actor, organization=organization, team_id=team_id, vendor=vendor)
    for team_id, vendor in taken:
        if team_id in here:
            revoke_team(actor=actor, organization=organization, team_id=team_id, vendor=vendor)
    return _toggled(given, taken, here)


def _toggled(given: list[Cell], taken: list[Cell], here: set[UUID]) -> Toggled:
    gone = {principal for principal, _ in (*given, *taken)} - here
    return Toggled(
        granted=sum(1 for principal, _ in given if principal in here),
        revoked=sum(1 for principal, _ in taken if principal in here),
        gone=len(gone),
    )
