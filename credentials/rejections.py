"""Rejections of stored credentials by their vendors, read from the request log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from uuid import UUID

from audit.selectors import CredentialUse, RejectedUse, accepted_uses, rejected_uses
from credentials.credential_scope import CredentialScope
from credentials.models import Credential
from credentials.selectors import CredentialSummary, credential_summaries
from orgs.models import Organization
from orgs.selectors import teams_by_person

# The log has no name for these two scopes: the caller identifies the credential.
_IDENTIFIED_BY_CALLER = {CredentialScope.TEAM, CredentialScope.SERVICE_CLIENT}


@dataclass(frozen=True, slots=True)
class SummaryWithRejection(CredentialSummary):
    """A credential with the time of its last rejection."""

    # None if the vendor accepted the credential, or it was changed, since. The page shows neither caller nor tool.
    rejected_at: datetime | None


def summaries_with_rejection(organization: Organization, *, vendor: str | None = None) -> list[SummaryWithRejection]:
    """The rows of `connections`, in the same order, with `rejected_at`."""
    rows = credential_summaries(organization, vendor=vendor)
    rejected = _rejected_at(organization, rows)
    return [_with_rejection(row, rejected.get(row.id)) for row in rows]


def _rejected_at(organization: Organization, rows: Sequence[CredentialSummary]) -> dict[UUID, datetime]:
    """Last rejection by credential id, unless accepted or changed since. Spec: D67 · reliability.md 4"""
    slugs = {row.vendor for row in rows}
    rejected = [use for use in rejected_uses(organization.id) if use.vendor in slugs] if rows else []
    # Without a recent rejection this is the only query.
    if not rejected:
        return {}
    callers = _callers(organization, rows, rejected)
    found: dict[UUID, CredentialUse] = {}
    for row in rows:
        moments = [use.rejected_at for use in rejected if _is_of(use, row, callers.get(row.id))]
        if moments:
            found[row.id] = CredentialUse(row.vendor, row.scope.value, row.name, max(moments), callers.get(row.id))
    accepted = accepted_uses(organization.id, list(found.values()))
    return {row_id: use.since for row_id, use in found.items() if use not in accepted}


def _is_of(use: RejectedUse, row: CredentialSummary, callers: tuple[str, ...] | None) -> bool:
    if (use.vendor, use.scope, use.name) != (row.vendor, row.scope.value, row.name):
        return False
    # A renamed or rebound key counts as new, because the log identifies it by its name.
    return use.rejected_at >= row.updated_at and (callers is None or use.user_id in callers)


def _callers(
    organization: Organization, rows: Sequence[CredentialSummary], rejected: Sequence[RejectedUse]
) -> dict[UUID, tuple[str, ...]]:
    """Subjects of the callers by credential id, for team and service client credentials."""
    if not _IDENTIFIED_BY_CALLER & {use.scope for use in rejected}:
        return {}
    return {**_service_client_callers(organization), **_team_callers(organization, rows)}


def _service_client_callers(organization: Organization) -> dict[UUID, tuple[str, ...]]:
    own = Credential.objects.filter(organization=organization, service_client__isnull=False).defer("sealed")
    return {row.id: (row.service_client.subject,) for row in own.select_related("service_client") if row.service_client}


def _team_callers(organization: Organization, rows: Sequence[CredentialSummary]) -> dict[UUID, tuple[str, ...]]:
    """The people whose calls use each team credential: of several teams, the oldest one's. Spec: D67"""
    held = {(row.vendor, row.team_id): row.id for row in rows if row.scope is CredentialScope.TEAM}
    callers: dict[UUID, list[str]] = {row_id: [] for row_id in held.values()}
    vendors = {vendor for vendor, _ in held}
    for user_id, team_ids in teams_by_person(organization).items():
        for vendor in vendors:
            if (row_id := _first_held(held, vendor, team_ids)) is not None:
                callers[row_id].append(str(user_id))
    return {row_id: tuple(subjects) for row_id, subjects in callers.items()}


def _first_held(held: Mapping[tuple[str, UUID | None], UUID], vendor: str, team_ids: Sequence[UUID]) -> UUID | None:
    return next((held[vendor, team_id] for team_id in team_ids if (vendor, team_id) in held), None)


def _with_rejection(row: CredentialSummary, rejected_at: datetime | None) -> SummaryWithRejection:
    return SummaryWithRejection(
        **{field.name: getattr(row, field.name) for field in fields(row)}, rejected_at=rejected_at
    )
