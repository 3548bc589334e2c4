"""Pure: which stored credential a call uses. Spec: §5 (7) · D67"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
    # Of a connection of one person.
    user_id: UUID | None = None
    # Unix time from which the token of a connection is to be renewed; None for fields that were typed in.
    refresh_at_s: float | None = None
    # When the token stops working; None if the vendor did not say.
    expires_at_s: float | None = None
    # The vendor has ended the connection: a new sign-in is needed.
    needs_sign_in: bool = False
    # It comes from a sign-in: the vendor may end its token at any time.
    is_connection: bool = False
    # The address that its token is for, or a folder above it.
    resource: str = ""


class CredentialIndex:
    """The credentials of one vendor by holder. It answers in constant time, however many named keys there are."""

    __slots__ = ("_default", "_named_keys", "_of_clients", "_of_people", "_of_teams")

    def __init__(self, credentials: Iterable[CredentialRef]) -> None:
        """Raises: ValueError for credentials of more than one vendor, and for an unknown scope."""
        held: dict[CredentialScope, dict[UUID | None, CredentialRef]] = {}
        vendors = set()
        # In the order of their ids: of two credentials of one holder, the one with the smallest id counts.
        for each in sorted(credentials, key=lambda ref: ref.id):
            vendors.add(each.vendor)
            held.setdefault(each.scope, {}).setdefault(_holder(each), each)
        if len(vendors) > 1:  # a wrong pick would hand one vendor's secret to another
            raise ValueError("credentials of more than one vendor")
        self._default = held.get(CredentialScope.ORGANIZATION, _NONE).get(None)
        self._of_clients = held.get(CredentialScope.SERVICE_CLIENT, _NONE)
        self._of_people = held.get(CredentialScope.PERSON, _NONE)
        self._named_keys = held.get(CredentialScope.NAMED_KEY, _NONE)
        self._of_teams = held.get(CredentialScope.TEAM, _NONE)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CredentialIndex) and all(
            getattr(self, name) == getattr(other, name) for name in self.__slots__
        )

    __hash__ = None  # type: ignore[assignment]

    def find(
        self, *, service_client_id: UUID | None, team_ids: Sequence[UUID], user_id: UUID | None = None
    ) -> CredentialRef | None:
        """The credential that this caller's call uses, or None. Spec: §5 (7) · D67, D160

        A person (`service_client_id` None; `team_ids` the caller's teams, oldest first): own connection > named key
        bound to one of the teams > team credential > organization default. A service client: its own > organization
        default.
        """
        if service_client_id is not None:  # it is in no team
            return self._of_clients.get(service_client_id, self._default)
        if self._of_people and user_id is not None and (own := self._of_people.get(user_id)) is not None:
            return own
        for by_team in (self._named_keys, self._of_teams):
            if by_team:
                for team_id in team_ids:
                    found = by_team.get(team_id)
                    if found is not None:
                        return found
        return self._default


def resolve(
    candidates: Iterable[CredentialRef],
    *,
    service_client_id: UUID | None,
    team_ids: Sequence[UUID],
    user_id: UUID | None = None,
) -> CredentialRef | None:
    """`CredentialIndex.find` for one question. Raises: ValueError as the index does."""
    return CredentialIndex(candidates).find(service_client_id=service_client_id, team_ids=team_ids, user_id=user_id)


_NONE: Mapping[UUID | None, CredentialRef] = {}


def _holder(ref: CredentialRef) -> UUID | None:
    """The holder whose calls the credential serves; None for the organization's, and for a key that serves none.

    Raises: ValueError for an unknown scope.
    """
    match ref.scope:
        case CredentialScope.ORGANIZATION:
            return None
        case CredentialScope.PERSON:
            return ref.user_id
        case CredentialScope.SERVICE_CLIENT:
            return ref.service_client_id
        case CredentialScope.NAMED_KEY | CredentialScope.TEAM:
            return ref.team_id
    # A new scope must be given a holder: none is guessed.
    raise ValueError(f"unknown credential scope {ref.scope!r}")
