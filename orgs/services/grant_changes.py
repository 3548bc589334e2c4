"""Many vendor grants at once, as a matrix is saved: only what was toggled changes, all of it or nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

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
def change_member_grants(*, actor: User, organization: Organization, grants: set[Cell], revokes: set[Cell]) -> Toggled:
    """The members have, or no longer have, these grants of their own; whoever left meanwhile is left out.

    What others changed meanwhile stays, unless it is one of these cells.
    Raises: NotFound for an unknown vendor; Forbidden.   Spec: §4.5 · D59
    """
    lock_organization(organization)
    rows = Membership.objects.filter(organization=organization)
    given, taken, gone = _cells_of(rows, "user_id", grants, revokes)
    for user_id, vendor in given:
        grant_member(actor=actor, organization=organization, user_id=user_id, vendor=vendor)
    for user_id, vendor in taken:
        revoke_member(actor=actor, organization=organization, user_id=user_id, vendor=vendor)
    return Toggled(len(given), len(taken), gone)


@transaction.atomic
def change_team_grants(*, actor: User, organization: Organization, grants: set[Cell], revokes: set[Cell]) -> Toggled:
    """The same for teams.

    Raises: NotFound for an unknown vendor; Forbidden.   Spec: §4.5 · D59
    """
    lock_organization(organization)
    given, taken, gone = _cells_of(Team.objects.filter(organization=organization), "id", grants, revokes)
    for team_id, vendor in given:
        grant_team(actor=actor, organization=organization, team_id=team_id, vendor=vendor)
    for team_id, vendor in taken:
        revoke_team(actor=actor, organization=organization, team_id=team_id, vendor=vendor)
    return Toggled(len(given), len(taken), gone)


def _cells_of(
    rows: QuerySet[Any], key: str, grants: set[Cell], revokes: set[Cell]
) -> tuple[list[Cell], list[Cell], int]:
    """What to give and to take, in order, of those that are still among `rows` by `key`, and how many had gone."""
    asked = {principal for principal, _ in grants | revokes}
    here = set(rows.filter(**{f"{key}__in": asked}).values_list(key, flat=True))
    given, taken = (sorted(cell for cell in cells if cell[0] in here) for cells in (grants, revokes))
    return given, taken, len(asked - here)
