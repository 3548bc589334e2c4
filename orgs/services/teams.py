"""Teams: create, rename, delete, add and remove members."""

from __future__ import annotations

from uuid import UUID

from django.conf import settings
from django.db import transaction

from audit.admin_log import record_admin
from audit.event_types import EventType
from gateway.coordination import epochs
from gateway.lib.rows import required_row
from gateway.lib.text import checked_name
from orgs import selectors
from orgs.errors import TeamNameTaken
from orgs.locking import lock_for_change
from orgs.models import Membership, Organization, Team, TeamMembership, User
from orgs.quotas import require_quota
from orgs.roles import Role
from orgs.services.open_requests import end_answered_requests


@transaction.atomic
def create_team(*, actor: User, organization: Organization, name: str) -> Team:
    """Raises: Invalid, TeamNameTaken, LimitReached; NotFound, Forbidden. Spec: §4.7 · D60, D161"""
    cleaned = checked_name(name)
    lock_for_change(organization, actor=actor, role=Role.ADMIN)
    _require_free(organization, cleaned)
    require_quota(Team.objects.filter(organization=organization), settings.TEAMS_PER_ORGANIZATION, "teams")
    team = Team.objects.create(organization=organization, name=cleaned)
    _record(EventType.TEAM_CREATED, actor, team)
    return team


@transaction.atomic
def rename_team(*, actor: User, organization: Organization, team_id: UUID, name: str) -> Team:
    """Raises: Invalid, TeamNameTaken; NotFound, Forbidden. Spec: §4.7 · D60"""
    cleaned = checked_name(name)
    lock_for_change(organization, actor=actor, role=Role.ADMIN)
    team = selectors.team(organization, str(team_id))
    # The team's own name is no conflict.
    _require_free(organization, cleaned, but=team)
    former, team.name = team.name, cleaned
    team.save(update_fields=["name"])
    _record(EventType.TEAM_RENAMED, actor, team, formerName=former)
    return team


@transaction.atomic
def delete_team(*, actor: User, organization: Organization, team_id: UUID) -> None:
    """Raises: NotFound, Forbidden. Spec: §4.7 · D9, D61"""
    lock_for_change(organization, actor=actor, role=Role.OWNER)
    team = selectors.team(organization, str(team_id))
    _record(EventType.TEAM_DELETED, actor, team)
    # Each member's own rows name the member's teams and contain their server access.
    members = team.team_memberships.values_list("membership__user_id", flat=True)
    epochs.bump_on_commit(*(epochs.subject(str(user_id)) for user_id in members))
    # Cascades to server access and team credentials; named keys become unbound.
    team.delete()


@transaction.atomic
def add_team_member(*, actor: User, organization: Organization, team_id: UUID, user_id: UUID) -> TeamMembership:
    """Idempotent. Raises: NotFound for a person outside the organization; Forbidden. Spec: §4.7 · D10, D60"""
    lock_for_change(organization, actor=actor, role=Role.ADMIN)
    team = selectors.team(organization, str(team_id))
    member = required_row(Membership.objects.select_related("user").filter(organization=organization, user_id=user_id))
    row, created = TeamMembership.objects.get_or_create(team=team, membership=member)
    if created:
        _record(EventType.TEAM_MEMBER_ADDED, actor, team, userId=str(user_id), user=member.user.label)
        end_answered_requests(organization.id)
        epochs.bump_on_commit(epochs.subject(str(user_id)))
    return row


@transaction.atomic
def remove_team_member(*, actor: User, organization: Organization, team_id: UUID, user_id: UUID) -> None:
    """Idempotent. Raises: NotFound for an unknown team; Forbidden. Spec: §4.7 · D9"""
    lock_for_change(organization, actor=actor, role=Role.ADMIN)
    team = selectors.team(organization, str(team_id))
    row = TeamMembership.objects.select_related("membership__user").filter(team=team, membership__user_id=user_id)
    found = row.first()
    if found is None:
        return
    found.delete()
    _record(EventType.TEAM_MEMBER_REMOVED, actor, team, userId=str(user_id), user=found.membership.user.label)
    epochs.bump_on_commit(epochs.subject(str(user_id)))


def _require_free(organization: Organization, name: str, *, but: Team | None = None) -> None:
    others = Team.objects.filter(organization=organization, name=name)
    if (others.exclude(pk=but.pk) if but else others).exists():
        raise TeamNameTaken(fields={"name": [TeamNameTaken.message]})


def _record(event: EventType, actor: User, team: Team, **facts: str) -> None:
    record_admin(
        event,
        org_id=team.organization_id,
        actor=actor.as_actor(),
        target=team.as_target(),
        metadata=facts,
    )
    # The server access and credentials of teams are loaded with the organization.
    epochs.bump_on_commit(epochs.organization(team.organization_id))
