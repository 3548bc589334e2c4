"""Pure: which stored credential a call uses. Spec: §5 (7) · D67"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from credentials.credential_scope import CredentialScope


@dataclass(frozen=True, slots=True)
class CredentialRef:
    """One stored credential in the call path's memory; its fields stay sealed."""

    id: UUID
    vendor: str
    scope: CredentialScope
    team_id: UUID | None
    service_client_id: UUID | None
    name: str
    data_key_version: int
    sealed: bytes = field(repr=False)
    revision: int


# Rank of a usable credential: (scope, position of its team, id). The smallest is used.
_Precedence = tuple[int, int, UUID]


def resolve(
    candidates: Sequence[CredentialRef], *, service_client_id: UUID | None, team_ids: Sequence[UUID]
) -> CredentialRef | None:
    """The credential of one vendor that this caller's call uses, or None. Spec: §5 (7) · D67

    A person (`service_client_id` None; `team_ids` the caller's teams, oldest first): named key bound to one of the
    teams > team credential > organization default. A service client: its own > organization default. The order of
    the candidates does not matter. Raises: ValueError if the candidates belong to more than one vendor.
    """
    # A wrong pick would hand one vendor's secret to another.
    _require_one_vendor(candidates)
    teams = {team_id: position for position, team_id in enumerate(team_ids)}
    chosen: CredentialRef | None = None
    best: _Precedence | None = None
    for candidate in candidates:
        precedence = _precedence(candidate, service_client_id, teams)
        if precedence is not None and (best is None or precedence < best):
            chosen, best = candidate, precedence
    return chosen


def _precedence(ref: CredentialRef, service_client_id: UUID | None, teams: Mapping[UUID, int]) -> _Precedence | None:
    """The rank of `ref` for this caller; None if the caller may not use it. Raises: ValueError for an unknown scope."""
    match ref.scope:
        case CredentialScope.ORGANIZATION:
            return (2, 0, ref.id)
        case CredentialScope.SERVICE_CLIENT:
            is_own = service_client_id is not None and ref.service_client_id == service_client_id
            return (0, 0, ref.id) if is_own else None
        case CredentialScope.NAMED_KEY | CredentialScope.TEAM:
            # A service client is in no team; a key without a team serves no call.
            position = None if service_client_id is not None or ref.team_id is None else teams.get(ref.team_id)
            is_key = ref.scope is CredentialScope.NAMED_KEY
            return None if position is None else (0 if is_key else 1, position, ref.id)
    # A new scope must be given a rank: none is guessed.
    raise ValueError(f"unknown credential scope {ref.scope!r}")


def _require_one_vendor(candidates: Sequence[CredentialRef]) -> None:
    if len({candidate.vendor for candidate in candidates}) > 1:
        raise ValueError("candidates of more than one vendor")
