"""Changes of many server accesses at once, as the matrix page saves them: all of them or none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction

from audit.actor import Target
from audit.admin_log import AdminEvent, record_admin_rows
from audit.event_types import EventType
from gateway.catalog import registry
from gateway.coordination import epochs
from gateway.lib import clock
from gateway.lib.errors import NotFound
from orgs.locking import lock_for_change
from orgs.models import Membership, Organization, ServerAccess, Team, TeamMembership, User
from orgs.roles import Role
from orgs.services.open_requests import end_answered_requests
from orgs.services.server_access_ends import checked_end, remove_ended

PrincipalVendor = tuple[UUID, str]  # a person's or team's id, and a vendor's slug


@dataclass(frozen=True, slots=True)
class ChangeCounts:
    """Numbers: rows requested to give, requested to take, and principals deleted since the page was shown.

    `ends_lost`: taken rows with an end, which giving them back would not restore.
    """

    added: int
    removed: int
    gone: int
    ends_lost: int


@dataclass(frozen=True, slots=True)
class _Request:
    """`column`: the principal's column in the table of server access."""

    actor: User
    organization: Organization
    column: str
    added: set[PrincipalVendor]
    removed: set[PrincipalVendor]
    expires_at: datetime | None  # of the added

    @property
    def asked(self) -> set[UUID]:
        return {principal for principal, _ in self.added | self.removed}


@transaction.atomic
def change_member_access(
    *,
    actor: User,
    organization: Organization,
    added: set[PrincipalVendor],
    removed: set[PrincipalVendor],
    expires_at: datetime | None = None,
) -> ChangeCounts:
    """Give and take members' direct server access; members who left are skipped. Spec: §4.5 · D59

    Other rows stay. The number of queries does not depend on the number of cells.
    Raises: NotFound for an unknown vendor; Forbidden; Invalid for an end that has passed.
    """
    end = checked_end(expires_at, clock.now())
    lock_for_change(organization, actor=actor, role=Role.ADMIN)
    request = _Request(actor, organization, "membership_id", added, removed, end)
    rows = Membership.objects.select_related("user").filter(organization=organization, user_id__in=request.asked)
    members = {row.user_id: row for row in rows}
    keys = {user_id: row.pk for user_id, row in members.items()}
    touched, counts = _apply(request, keys, {user_id: row.user.name for user_id, row in members.items()})
    if touched:
        epochs.bump_on_commit(*(epochs.subject(str(user_id)) for user_id in touched))
    return counts


@transaction.atomic
def change_team_access(
    *,
    actor: User,
    organization: Organization,
    added: set[PrincipalVendor],
    removed: set[PrincipalVendor],
    expires_at: datetime | None = None,
) -> ChangeCounts:
    """As `change_member_access`. Spec: §4.5 · D59"""
    end = checked_end(expires_at, clock.now())
    lock_for_change(organization, actor=actor, role=Role.ADMIN)
    request = _Request(actor, organization, "team_id", added, removed, end)
    teams = Team.objects.filter(organization=organization, pk__in=request.asked)
    names = {team.pk: team.name for team in teams}
    touched, counts = _apply(request, {team_id: team_id for team_id in names}, names)
    if touched:  # a team's server access is part of each member's own standing
        # Each member's loaded access contains the server access of the member's teams.
        members = TeamMembership.objects.filter(team__in=touched).values_list("membership__user_id", flat=True)
        subjects = [epochs.subject(str(user_id)) for user_id in members.distinct()]
        epochs.bump_on_commit(epochs.organization(organization.id), *subjects)
    return counts


def _apply(
    request: _Request, keys: Mapping[UUID, int | UUID], names: Mapping[UUID, str]
) -> tuple[list[UUID], ChangeCounts]:
    """Write the differences with an audit row each; return the changed principals. `keys`: existing principals only."""
    given, taken = (sorted(pair for pair in pairs if pair[0] in keys) for pairs in (request.added, request.removed))
    rows = ServerAccess.objects.filter(organization=request.organization)
    # A row that has ended is no access that could be taken, or given again.
    remove_ended(rows.select_related("membership__user", "team"), request.organization.id)
    held = _existing(request, keys)
    new = [pair for pair in given if pair not in held]
    old = [pair for pair in taken if pair in held]
    # Access to a vendor that left the catalog can still be taken.
    _require_known({vendor for principal, vendor in [*given, *taken] if (principal, vendor) not in held})
    ServerAccess.objects.bulk_create(
        ServerAccess(
            organization=request.organization,
            vendor=vendor,
            granted_by=request.actor,
            expires_at=request.expires_at,
            **{request.column: keys[principal]},
        )
        for principal, vendor in new
    )
    taken_rows = ServerAccess.objects.filter(pk__in=[held[pair] for pair in old])
    ends_lost = taken_rows.filter(expires_at__isnull=False).count()
    taken_rows.delete()
    until = {} if request.expires_at is None else {"expiresAt": clock.rfc3339(request.expires_at)}
    happened = [
        AdminEvent(event, Target(id=str(principal), label=names[principal]), {"vendor": vendor, **facts})
        for event, pairs, facts in (
            (EventType.SERVER_ACCESS_GRANTED, new, until),
            (EventType.SERVER_ACCESS_REVOKED, old, {}),
        )
        for principal, vendor in pairs
    ]
    record_admin_rows(happened, org_id=request.organization.id, actor=request.actor.as_actor())
    touched = sorted({principal for principal, _ in [*new, *old]})
    if new:
        end_answered_requests(request.organization.id)
    return touched, ChangeCounts(len(given), len(taken), len(request.asked - set(keys)), ends_lost)


def _require_known(vendors: set[str]) -> None:
    known = registry.load() if vendors else ()
    if any(vendor not in known for vendor in vendors):
        raise NotFound


def _existing(request: _Request, keys: Mapping[UUID, int | UUID]) -> dict[PrincipalVendor, int]:
    """Existing rows by cell, with the primary key of their row."""
    principal_of = {key: principal for principal, key in keys.items()}
    rows = ServerAccess.objects.filter(
        organization=request.organization, **{f"{request.column}__in": list(principal_of)}
    )
    return {(principal_of[key], vendor): pk for pk, key, vendor in rows.values_list("pk", request.column, "vendor")}
