"""Pure: which of the stored credentials a caller's call uses, and why the others are not it. Spec: §5 (7) · D67"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from uuid import UUID

from credentials.scopes import CredentialScope


@dataclass(frozen=True, slots=True)
class CredentialRef:
    """One stored credential as the call path holds it: who it is for, and the fields still sealed."""

    id: UUID
    vendor: str
    scope: CredentialScope
    team_id: UUID | None
    service_client_id: UUID | None
    name: str
    data_key_version: int
    sealed: bytes = field(repr=False)
    revision: int


class Reason(StrEnum):
    """Why a credential was or was not chosen, as a person reads it."""

    CHOSEN = "used for the call"
    LESS_SPECIFIC = "a more specific credential comes first"
    OTHER_TEAM = "belongs to a team the caller is not in"
    UNBOUND = "this key is not bound to a team"
    OTHER_SERVICE_ACCOUNT = "belongs to another service account"
    SERVICE_ACCOUNTS_ONLY = "belongs to a service account, and the caller is a person"
    PEOPLE_ONLY = "serves the members of a team, and the caller is a service account"


@dataclass(frozen=True, slots=True)
class Step:
    """What became of one candidate."""

    credential: CredentialRef
    reason: Reason


# Where a usable credential stands: (how general its scope is, how young its team, its id). The smallest is used.
_Place = tuple[int, int, UUID]


def resolve(
    candidates: Sequence[CredentialRef], *, service_client_id: UUID | None, team_ids: Sequence[UUID]
) -> CredentialRef | None:
    """The credential of one vendor that this caller's call uses, or None.

    A person (`service_client_id` None; `team_ids` the caller's teams, oldest first): named key bound to one of the
    teams > team credential > organization default. A service account: its own > organization default. The order of
    the candidates does not matter.

    Raises: ValueError if the candidates are of more than one vendor: a wrong pick would hand one vendor's secret to
    another.   Spec: §5 (7) · D67
    """
    _require_one_vendor(candidates)
    teams = {team_id: position for position, team_id in enumerate(team_ids)}
    chosen: CredentialRef | None = None
    best: _Place | None = None
    for candidate in candidates:
        place = _place(candidate, service_client_id, teams)
        if not isinstance(place, Reason) and (best is None or place < best):
            chosen, best = candidate, place
    return chosen


def explain(
    candidates: Sequence[CredentialRef], *, service_client_id: UUID | None, team_ids: Sequence[UUID]
) -> list[Step]:
    """One step per candidate: those the caller could use first, in the order in which they would be tried.

    The one that `resolve` picks, if any, is the first and the only `CHOSEN`.   Raises: as `resolve`.
    """
    _require_one_vendor(candidates)
    teams = {team_id: position for position, team_id in enumerate(team_ids)}
    usable: list[tuple[_Place, CredentialRef]] = []
    unusable: list[Step] = []
    for candidate in candidates:
        place = _place(candidate, service_client_id, teams)
        if isinstance(place, Reason):
            unusable.append(Step(candidate, place))
        else:
            usable.append((place, candidate))
    usable.sort(key=lambda pair: pair[0])
    reasons = [Reason.CHOSEN] + [Reason.LESS_SPECIFIC] * len(usable)
    return [Step(ref, reason) for (_, ref), reason in zip(usable, reasons, strict=False)] + unusable


def _place(ref: CredentialRef, service_client_id: UUID | None, teams: Mapping[UUID, int]) -> _Place | Reason:
    """Where `ref` stands for this caller, or why it has no place. An unknown scope raises: nothing is guessed."""
    match ref.scope:
        case CredentialScope.ORGANIZATION:
            return (2, 0, ref.id)
        case CredentialScope.SERVICE_CLIENT:
            if service_client_id is None:
                return Reason.SERVICE_ACCOUNTS_ONLY
            return (0, 0, ref.id) if ref.service_client_id == service_client_id else Reason.OTHER_SERVICE_ACCOUNT
        case CredentialScope.NAMED_KEY | CredentialScope.TEAM:
            return _team_place(ref, service_client_id, teams)
    raise ValueError(f"unknown credential scope {ref.scope!r}")


def _team_place(ref: CredentialRef, service_client_id: UUID | None, teams: Mapping[UUID, int]) -> _Place | Reason:
    if ref.team_id is None:
        return Reason.UNBOUND
    if service_client_id is not None:
        return Reason.PEOPLE_ONLY
    position = teams.get(ref.team_id)
    if position is None:
        return Reason.OTHER_TEAM
    return (0 if ref.scope is CredentialScope.NAMED_KEY else 1, position, ref.id)


def _require_one_vendor(candidates: Sequence[CredentialRef]) -> None:
    if len({candidate.vendor for candidate in candidates}) > 1:
        raise ValueError("candidates of more than one vendor")
