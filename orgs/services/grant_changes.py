"""Many vendor grants at once, as the matrix page saves them: all changes or none."""

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
    """Numbers: grants requested to give, requested to take, and principals deleted since the page was shown."""

    granted: int
    revoked: int
    gone: int


@dataclass(frozen=True, slots=True)
class _Change:
    """`column`: the principal's column in the table of grants."""

    actor: User
    organization: Organization
    column: str
    grants: set[Cell]
    revokes: set[Cell]

    @property
    def asked(self) -> set[UUID]:
        return {principal for principal, _ in self.grants | self.revokes}


@transaction.atomic
def change_member_grants(*, actor: User, organization: Organization, grants: set[Cell], revokes: set[Cell]) -> Toggled:
    """Give and take members' direct grants; members who left are skipped. Spec: §4.5 · D59

    Other grants stay. The number of queries does not depend on the number of cells.
    Raises: NotFound for an unknown vendor; Forbidden.
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
    """As `change_member_grants`. Raises: NotFound for an unknown vendor; Forbidden. Spec: §4.5 · D59"""
    lock_for_change(organization, actor=actor, role=Role.ADMIN)
    change = _Change(actor, organization, "team_id", grants, revokes)
    teams = Team.objects.filter(organization=organization, pk__in=change.asked)
    names = {team.pk: team.name for team in teams}
    touched, toggled = _apply(change, {team_id: team_id for team_id in names}, names)
    if touched:  # a team's grants are part of each member's own standing
        # Each member's loaded access contains the grants of the member's teams.
        members = TeamMembership.objects.filter(team__in=touched).values_list("membership__user_id", flat=True)
        subjects = [epochs.subject(str(user_id)) for user_id in members.distinct()]
        epochs.bump_on_commit(epochs.organization(organization.id), *subjects)
    return toggled


def _apply(change: _Change, keys: Mapping[UUID, int | UUID], names: Mapping[UUID, str]) -> tuple[list[UUID], Toggled]:
    """Write the differences with an audit row each; return the changed principals. `keys`: existing principals only."""
    given, taken = (sorted(cell for cell in cells if cell[0] in keys) for cells in (change.grants, change.revokes))
    held = _held(change, keys)
    new = [cell for cell in given if cell not in held]
    old = [cell for cell in taken if cell in held]
    # A grant for a vendor that left the catalog can still be taken.
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
    """Existing grants by cell, with the primary key of their row."""
    principal_of = {key: principal for principal, key in keys.items()}
    rows = ServerAccessGrant.objects.filter(
        organization=change.organization, **{f"{change.column}__in": list(principal_of)}
    )
    return {(principal_of[key], vendor): pk for pk, key, vendor in rows.values_list("pk", change.column, "vendor")}
