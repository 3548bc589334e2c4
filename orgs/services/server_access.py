"""Vendor grants of members and teams: give, take, replace. The next call in every process sees the change."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db import transaction

from audit.actor import Actor, Target
from audit.admin_log import record_admin
from audit.event_types import EventType
from gateway.catalog import registry
from gateway.coordination import epochs
from gateway.lib.errors import Invalid, NotFound
from orgs import selectors
from orgs.locking import lock_for_change
from orgs.models import Membership, Organization, ServerAccess, Team, User
from orgs.roles import Role


@transaction.atomic
def add_member_vendor(*, actor: User, organization: Organization, user_id: UUID, vendor: str) -> ServerAccess:
    """Idempotent. Raises: NotFound for an unknown member or vendor; Forbidden. Spec: §4.5 · D59"""
    lock_for_change(organization, actor=actor, role=Role.ADMIN)
    member = selectors.member(organization, str(user_id))
    registry.known_vendor(vendor)
    row, created = ServerAccess.objects.get_or_create(
        organization=organization, membership=member, vendor=vendor, defaults={"granted_by": actor}
    )
    if created:
        _record(EventType.SERVER_ACCESS_GRANTED, actor, organization, _person(member), vendor=vendor)
        epochs.bump_on_commit(epochs.subject(str(user_id)))
    return row


@transaction.atomic
def remove_member_vendor(*, actor: User | Actor, organization: Organization, user_id: UUID, vendor: str) -> None:
    """Idempotent. Raises: NotFound for an unknown member or vendor; Forbidden. Spec: §4.5 · D9"""
    lock_for_change(organization, actor=actor, role=Role.ADMIN)
    member = selectors.member(organization, str(user_id))
    deleted, _ = ServerAccess.objects.filter(membership=member, vendor=vendor).delete()
    if not deleted:
        registry.known_vendor(vendor)
        return
    _record(EventType.SERVER_ACCESS_REVOKED, actor, organization, _person(member), vendor=vendor)
    epochs.bump_on_commit(epochs.subject(str(user_id)))


@transaction.atomic
def replace_member_vendors(
    *, actor: User, organization: Organization, user_id: UUID, vendors: Sequence[str]
) -> list[str]:
    """Return `vendors` sorted. Raises: Invalid for an unknown vendor; NotFound, Forbidden. Spec: §4.5 · D59"""
    lock_for_change(organization, actor=actor, role=Role.ADMIN)
    member = selectors.member(organization, str(user_id))
    wanted = require_vendors(vendors)
    own = ServerAccess.objects.filter(organization=organization, membership=member)
    had = set(own.values_list("vendor", flat=True))
    # Grants that stay keep their date.
    own.exclude(vendor__in=wanted).delete()
    ServerAccess.objects.bulk_create(
        ServerAccess(organization=organization, membership=member, vendor=vendor, granted_by=actor)
        for vendor in wanted
        if vendor not in had
    )
    if had != set(wanted):
        facts = {"vendors": wanted, "were": sorted(had)}
        _record(EventType.SERVER_ACCESS_REPLACED, actor, organization, _person(member), **facts)
        epochs.bump_on_commit(epochs.subject(str(user_id)))
    return wanted


@transaction.atomic
def add_team_vendor(*, actor: User, organization: Organization, team_id: UUID, vendor: str) -> ServerAccess:
    """Idempotent. Raises: NotFound for an unknown team or vendor; Forbidden. Spec: §4.5 · D59"""
    lock_for_change(organization, actor=actor, role=Role.ADMIN)
    team = _team(organization, team_id)
    registry.known_vendor(vendor)
    row, created = ServerAccess.objects.get_or_create(
        organization=organization, team=team, vendor=vendor, defaults={"granted_by": actor}
    )
    if created:
        _record(EventType.SERVER_ACCESS_GRANTED, actor, organization, _group(team), vendor=vendor)
        _bump_team(team)
    return row


@transaction.atomic
def remove_team_vendor(*, actor: User | Actor, organization: Organization, team_id: UUID, vendor: str) -> None:
    """Idempotent. Raises: NotFound for an unknown team or vendor; Forbidden. Spec: §4.5 · D9"""
    lock_for_change(organization, actor=actor, role=Role.ADMIN)
    team = _team(organization, team_id)
    deleted, _ = ServerAccess.objects.filter(team=team, vendor=vendor).delete()
    if not deleted:
        registry.known_vendor(vendor)
        return
    _record(EventType.SERVER_ACCESS_REVOKED, actor, organization, _group(team), vendor=vendor)
    _bump_team(team)


def require_vendors(slugs: Sequence[str]) -> list[str]:
    """The slugs, each once and sorted. Raises: Invalid with the unknown ones. Spec: D59"""
    known = registry.load()
    unknown = sorted({slug for slug in slugs if slug not in known})
    if unknown:
        raise Invalid(fields={"vendors": [f"There is no vendor {slug[:60]!r}." for slug in unknown[:5]]})
    return sorted(set(slugs))


def _team(organization: Organization, team_id: UUID) -> Team:
    row = Team.objects.filter(organization=organization, pk=team_id).first()
    if row is None:
        raise NotFound
    return row


def _bump_team(team: Team) -> None:
    # Each member's loaded access contains the grants of the member's teams.
    members = team.team_memberships.values_list("membership__user_id", flat=True)
    epochs.bump_on_commit(
        epochs.organization(team.organization_id), *(epochs.subject(str(user_id)) for user_id in members)
    )


def _person(member: Membership) -> Target:
    return Target(id=str(member.user_id), label=member.user.label)


def _group(team: Team) -> Target:
    return Target(id=str(team.pk), label=team.name)


def _record(event: EventType, actor: User | Actor, organization: Organization, target: Target, **facts: object) -> None:
    record_admin(event, org_id=organization.id, actor=actor.as_actor(), target=target, metadata=facts)
