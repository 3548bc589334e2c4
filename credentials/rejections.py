"""Rejections of stored credentials by their vendors: of calls, from the request log, and of checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from uuid import UUID

from audit.selectors import CredentialUse, RejectedUse, accepted_uses, rejected_uses
from credentials.credential_scope import CredentialScope
from credentials.selectors import CredentialSummary, credential_summaries
from credentials.vendor_check import Verdict
from orgs.models import Organization
from orgs.selectors import teams_by_person

# The log has no name for these two scopes: the caller identifies the credential.
IDENTIFIED_BY_CALLER = {CredentialScope.TEAM, CredentialScope.SERVICE_CLIENT}


@dataclass(frozen=True, slots=True)
class SummaryWithRejection(CredentialSummary):
    """A credential with the time of its last rejection."""

    # None if the vendor accepted the credential, or it was changed, since. The page shows neither caller nor tool.
    rejected_at: datetime | None
    # The first of the rejections that no success interrupted; None if that is not known.
    rejected_since: datetime | None


@dataclass(frozen=True, slots=True)
class _Rejections:
    last: datetime
    first: datetime
    # Whether no success interrupted them.
    is_since_first: bool = True


def summaries_with_rejection(organization: Organization, *, vendor: str | None = None) -> list[SummaryWithRejection]:
    """The rows of `connections`, in the same order, with `rejected_at`."""
    return with_rejections(organization, credential_summaries(organization, vendor=vendor))


def with_rejections(organization: Organization, rows: Sequence[CredentialSummary]) -> list[SummaryWithRejection]:
    """The same for rows that are loaded already."""
    rejected = _rejected(organization, rows)
    return [_with_rejection(row, rejected.get(row.id)) for row in rows]


def callers(organization: Organization, rows: Sequence[CredentialSummary]) -> dict[UUID, tuple[str, ...]]:
    """Subjects of the callers by credential id, for team and service client credentials."""
    own = {row.id: (row.service_client_subject,) for row in rows if row.service_client_id}
    return {**own, **_team_callers(organization, rows)}


def _rejected(organization: Organization, rows: Sequence[CredentialSummary]) -> dict[UUID, _Rejections]:
    """Rejections by credential id, unless accepted or changed since. Spec: D67 · reliability.md 4"""
    slugs = {row.vendor for row in rows}
    rejected = [use for use in rejected_uses(organization.id) if use.vendor in slugs] if rows else []
    refused_checks = {row.id: row.checked_at for row in rows if row.checked_at and _was_refused(row)}
    # Without a recent rejection this is the only query.
    if not rejected and not refused_checks:
        return {}
    by_caller = {use.scope for use in rejected} | {row.scope for row in rows if row.id in refused_checks}
    of_callers = callers(organization, rows) if IDENTIFIED_BY_CALLER & by_caller else {}
    found: dict[UUID, _Rejections] = {}
    for row in rows:
        uses = [use for use in rejected if _is_of(use, row, of_callers.get(row.id))]
        moments = [use.rejected_at for use in uses]
        firsts = [use.first_rejected_at for use in uses]
        if (checked_at := refused_checks.get(row.id)) is not None:
            moments.append(checked_at)
            firsts.append(checked_at)
        if moments:
            found[row.id] = _Rejections(max(moments), max(min(firsts), _counts_from(row)))
    return _not_accepted_since(organization, [row for row in rows if row.id in found], found, of_callers)


def _not_accepted_since(
    organization: Organization,
    rows: Sequence[CredentialSummary],
    found: Mapping[UUID, _Rejections],
    of_callers: Mapping[UUID, tuple[str, ...]],
) -> dict[UUID, _Rejections]:
    def use(row: CredentialSummary, since: datetime) -> CredentialUse:
        return CredentialUse(row.vendor, row.scope.value, row.name, since, of_callers.get(row.id))

    after_last = {row.id: use(row, found[row.id].last) for row in rows}
    accepted = accepted_uses(organization.id, list(after_last.values()))
    left = [row for row in rows if after_last[row.id] not in accepted]
    # Of a single rejection it is known already.
    after_first = {row.id: use(row, found[row.id].first) for row in left if found[row.id].first < found[row.id].last}
    interrupted = accepted_uses(organization.id, list(after_first.values()))
    return {row.id: replace(found[row.id], is_since_first=after_first.get(row.id) not in interrupted) for row in left}


def _was_refused(row: CredentialSummary) -> bool:
    return row.check_verdict == Verdict.REJECTED.value


def _counts_from(row: CredentialSummary) -> datetime:
    # A renamed or rebound key counts as new, because the log identifies it by its name. An accepted check ends what was
    # before it.
    return max(row.updated_at, row.validated_at or row.updated_at)


def _is_of(use: RejectedUse, row: CredentialSummary, subjects: tuple[str, ...] | None) -> bool:
    if (use.vendor, use.scope, use.name) != (row.vendor, row.scope.value, row.name):
        return False
    return use.rejected_at >= _counts_from(row) and (subjects is None or use.user_id in subjects)


def _team_callers(organization: Organization, rows: Sequence[CredentialSummary]) -> dict[UUID, tuple[str, ...]]:
    """The people whose calls use each team credential: of several teams, the oldest one's. Spec: D67"""
    held = {(row.vendor, row.team_id): row.id for row in rows if row.scope is CredentialScope.TEAM}
    found: dict[UUID, list[str]] = {row_id: [] for row_id in held.values()}
    vendors = {vendor for vendor, _ in held}
    for user_id, team_ids in teams_by_person(organization).items():
        for vendor in vendors:
            if (row_id := _first_held(held, vendor, team_ids)) is not None:
                found[row_id].append(str(user_id))
    return {row_id: tuple(subjects) for row_id, subjects in found.items()}


def _first_held(held: Mapping[tuple[str, UUID | None], UUID], vendor: str, team_ids: Sequence[UUID]) -> UUID | None:
    return next((held[vendor, team_id] for team_id in team_ids if (vendor, team_id) in held), None)


def _with_rejection(row: CredentialSummary, found: _Rejections | None) -> SummaryWithRejection:
    return SummaryWithRejection(
        **{field.name: getattr(row, field.name) for field in fields(row)},
        rejected_at=found.last if found else None,
        rejected_since=found.first if found and found.is_since_first else None,
    )
