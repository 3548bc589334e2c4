"""Server access of members and teams: give, take, replace. The next call in every process sees the change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction

from audit.actor import Actor
from audit.admin_log import record_admin
from audit.event_types import EventType
from gateway.catalog import registry
from gateway.coordination import epochs
from gateway.lib import clock
from gateway.lib.errors import Invalid
from gateway.lib.sentences import sentence
from orgs import selectors
from orgs.locking import lock_for_change
from orgs.models import Membership, Organization, ServerAccess, Team, User
from orgs.models.server_access import EndingQuerySet
from orgs.roles import Role
from orgs.services.open_requests import end_answered_requests
from orgs.services.server_access_ends import checked_end, remove_ended


@dataclass(frozen=True, slots=True)
class _Holder:
    """The member or the team of one change, under the organization's lock."""

    organization: Organization
    actor: User | Actor
    principal: Membership | Team

    @property
    def rows(self) -> EndingQuerySet[ServerAccess]:
        return ServerAccess.objects.filter(organization=self.organization, **self.column)

    @property
    def column(self) -> dict[str, Membership | Team]:
        return {"team" if isinstance(self.principal, Team) else "membership": self.principal}

    def record(self, event: EventType, **facts: object) -> None:
        """Writes the admin row and bumps the epochs concerned, so that every process reloads the affected people."""
        org_id, changed = self.organization.id, self.principal
        if isinstance(changed, Team):
            # Each member's loaded access contains the server access of the member's teams.
            people = changed.team_memberships.values_list("membership__user_id", flat=True)
            names = [epochs.organization(org_id), *(epochs.subject(str(user_id)) for user_id in people)]
        else:
            names = [epochs.subject(str(changed.user_id))]
        record_admin(event, org_id=org_id, actor=self.actor.as_actor(), target=changed.as_target(), metadata=facts)
        epochs.bump_on_commit(*names)


@transaction.atomic
def add_member_vendor(
    *, actor: User, organization: Organization, user_id: UUID, vendor: str, expires_at: datetime | None = None
) -> ServerAccess:
    """Give access until `expires_at`, or without an end; access that the member has gets this end. Idempotent.

    Raises: NotFound for an unknown member or vendor; Forbidden; Invalid for an end that has passed. Spec: §4.5 · D59
    """
    return _add(_member(actor, organization, user_id), actor, vendor, expires_at)


@transaction.atomic
def add_team_vendor(
    *, actor: User, organization: Organization, team_id: UUID, vendor: str, expires_at: datetime | None = None
) -> ServerAccess:
    """As `add_member_vendor`. Spec: §4.5 · D59"""
    return _add(_team(actor, organization, team_id), actor, vendor, expires_at)


@transaction.atomic
def remove_member_vendor(*, actor: User | Actor, organization: Organization, user_id: UUID, vendor: str) -> None:
    """Idempotent. Raises: NotFound for an unknown member or vendor; Forbidden. Spec: §4.5 · D9"""
    _remove(_member(actor, organization, user_id), vendor)


@transaction.atomic
def remove_team_vendor(*, actor: User | Actor, organization: Organization, team_id: UUID, vendor: str) -> None:
    """Idempotent. Raises: NotFound for an unknown team or vendor; Forbidden. Spec: §4.5 · D9"""
    _remove(_team(actor, organization, team_id), vendor)


@transaction.atomic
def replace_member_vendors(
    *, actor: User, organization: Organization, user_id: UUID, vendors: Sequence[str]
) -> list[str]:
    """Return `vendors` sorted. Raises: Invalid for an unknown vendor; NotFound, Forbidden. Spec: §4.5 · D59"""
    holder = _member(actor, organization, user_id)
    wanted = require_vendors(vendors)
    had = set(holder.rows.values_list("vendor", flat=True))
    # Rows that stay keep their date and their end.
    holder.rows.exclude(vendor__in=wanted).delete()
    ServerAccess.objects.bulk_create(
        ServerAccess(organization=organization, vendor=vendor, granted_by=actor, **holder.column)
        for vendor in wanted
        if vendor not in had
    )
    if had != set(wanted):
        holder.record(EventType.SERVER_ACCESS_REPLACED, vendors=wanted, were=sorted(had))
        end_answered_requests(organization.id)
    return wanted


def require_vendors(slugs: Sequence[str]) -> list[str]:
    """The slugs, each once and sorted. Raises: Invalid with the unknown ones. Spec: D59"""
    known = registry.load()
    unknown = sorted({slug for slug in slugs if slug not in known})
    if unknown:
        raise Invalid(
            fields={
                "vendors": [sentence("There is no vendor %(slug)s.", slug=f"{slug[:60]!r}") for slug in unknown[:5]]
            }
        )
    return sorted(set(slugs))


def _add(holder: _Holder, actor: User, vendor: str, expires_at: datetime | None) -> ServerAccess:
    registry.known_vendor(vendor)
    end = checked_end(expires_at, clock.now())
    given = {"granted_by": actor, "expires_at": end}
    row, created = ServerAccess.objects.get_or_create(
        organization=holder.organization, vendor=vendor, defaults=given, **holder.column
    )
    if not created and row.expires_at == end:
        return row
    facts = {} if row.expires_at == end is None else {"expiresAt": _shown(end)}
    if not created:
        facts["formerEnd"] = _shown(row.expires_at)
        row.expires_at, row.granted_by = end, actor
        row.save(update_fields=["expires_at", "granted_by"])
    holder.record(EventType.SERVER_ACCESS_GRANTED, vendor=vendor, **facts)
    end_answered_requests(holder.organization.id)
    return row


def _shown(end: datetime | None) -> str | None:
    return None if end is None else clock.rfc3339(end)


def _remove(holder: _Holder, vendor: str) -> None:
    deleted, _ = holder.rows.filter(vendor=vendor).delete()
    if deleted:
        holder.record(EventType.SERVER_ACCESS_REVOKED, vendor=vendor)
    else:
        registry.known_vendor(vendor)


def _member(actor: User | Actor, organization: Organization, user_id: UUID) -> _Holder:
    lock_for_change(organization, actor=actor, role=Role.ADMIN)
    return _without_ended(_Holder(organization, actor, selectors.member(organization, str(user_id))))


def _team(actor: User | Actor, organization: Organization, team_id: UUID) -> _Holder:
    lock_for_change(organization, actor=actor, role=Role.ADMIN)
    return _without_ended(_Holder(organization, actor, selectors.team(organization, str(team_id))))


def _without_ended(holder: _Holder) -> _Holder:
    # A row that has ended is no access that could be taken, or given again.
    remove_ended(holder.rows.select_related("membership__user", "team"), holder.organization.id)
    return holder
