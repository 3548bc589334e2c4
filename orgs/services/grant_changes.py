"""Many vendor grants at once, as a matrix is saved: only what was toggled changes, all of it or nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from django.db import transaction

from audit.actor import Target
from audit.event_types import EventType
from audit.record import Happened, record_admin_rows
from gateway.catalog import registry
from gateway.coordination import epochs
from gateway.lib.errors import NotFound
from orgs.locking import lock_for_change
from orgs.models import Membership, Organization, ServerAccessGrant, Team, TeamMembership, User
from orgs.roles import Role

Cell = tuple[UUID, str]  # a person's or team's id, and a vendor's slug


@dataclass(frozen=True, slots=True)
class Toggled:
    """How many grants were asked for and given or taken, and how many rows had gone meanwhile."""

    granted: int
    revoked: int
    gone: int


@dataclass(frozen=True, slots=True)
class _Change:
    """One request to change grants: `column` is the principal's in the table of grants."""

    actor: User
    organization: Organization
    column: str
    grants: set[Cell]
    revokes: set[Cell]

    @property
    def asked(self) -> set[UUID]:
        """The ids of all principals that the cells name."""
        return {principal for principal, _ in self.grants | self.revokes}


@transaction.atomic
def change_member_grants(*, actor: User, organization: Organization, grants: set[Cell], revokes: set[Cell]) -> Toggled:
    """The members have, or no longer have, these grants of their own; members who left meanwhile are left out.

    Changes that others made meanwhile stay, unless they are in one of these cells. The number of queries is the same
    for any number of cells.
    Raises: NotFound for an unknown vendor; Forbidden.   Spec: §4.5 · D59
    """
    lock_for_change(organization, actor=actor, role=Role.ADMIN)
    change = _Change(actor, organization, "membership_id", grants, revokes)
    rows = Membership.objects.select_related("user").filter(organization=organization, user_id__in=change.asked)
    members = {row.user_id: row for row in rows}
    keys = {user_id: row.pk for user_id, row in members.items()}
    touched, toggled = _apply(change, keys, {user_id: row.user.name for user_id, row in members.items()})
    if touched:
        epochs.bump_on_commit(*(epochs.subject(str(user_id)) for user_id in touched))
    return toggled


@transaction.atomic
def change_team_grants(*, actor: User, organization: Organization, grants: set[Cell], revokes: set[Cell]) -> Toggled:
    """The same for teams.

    Raises: NotFound for an unknown vendor; Forbidden.   Spec: §4.5 · D59
    """
    lock_for_change(organization, actor=actor, role=Role.ADMIN)
    change = _Change(actor, organization, "team_id", grants, revokes)
    teams = Team.objects.filter(organization=organization, pk__in=change.asked)
    names = {team.pk: team.name for team in teams}
    touched, toggled = _apply(change, {team_id: team_id for team_id in names}, names)
    if touched:  # a team's grants are part of each member's own standing
        members = TeamMembership.objects.filter(team__in=touched).values_list("membership__user_id", flat=True)
        subjects = [epochs.subject(str(user_id)) for user_id in members.distinct()]
        epochs.bump_on_commit(epochs.organization(organization.id), *subjects)
    return toggled


def _apply(change: _Change, keys: Mapping[UUID, int | UUID], names: Mapping[UUID, str]) -> tuple[list[UUID], Toggled]:
    """Write what differs from the rows, with an audit row for each; returns the principals that it touched.

    `keys` are the principals that are still here, with their key in the table of grants.
    """
    given, taken = (sorted(cell for cell in cells if cell[0] in keys) for cells in (change.grants, change.revokes))
    held = _held(change, keys)
    new = [cell for cell in given if cell not in held]
    old = [cell for cell in taken if cell in held]
    _require_known({vendor for principal, vendor in [*given, *taken] if (principal, vendor) not in held})
    ServerAccessGrant.objects.bulk_create(
        ServerAccessGrant(
            organization=change.organization, vendor=vendor, granted_by=change.actor, **{change.column: keys[principal]}
        )
        for principal, vendor in new
    )
    ServerAccessGrant.objects.filter(pk__in=[held[cell] for cell in old]).delete()
    happened = [
        Happened(event, Target(id=str(principal), label=names[principal]), {"vendor": vendor})
        for event, cells in ((EventType.SERVER_ACCESS_GRANTED, new), (EventType.SERVER_ACCESS_REVOKED, old))
        for principal, vendor in cells
    ]
    record_admin_rows(happened, org_id=change.organization.id, actor=change.actor.as_actor())
    touched = sorted({principal for principal, _ in [*new, *old]})
    return touched, Toggled(len(given), len(taken), len(change.asked - set(keys)))


def _require_known(vendors: set[str]) -> None:
    known = registry.load() if vendors else ()
    if any(vendor not in known for vendor in vendors):
        raise NotFound


def _held(change: _Change, keys: Mapping[UUID, int | UUID]) -> dict[Cell, int]:
    """The grants that these principals have, by cell, with the key of their row."""
    principal_of = {key: principal for principal, key in keys.items()}
    rows = ServerAccessGrant.objects.filter(
        organization=change.organization, **{f"{change.column}__in": list(principal_of)}
    )
    return {(principal_of[key], vendor): pk for pk, key, vendor in rows.values_list("pk", change.column, "vendor")}
