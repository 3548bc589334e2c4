"""Pure: who is calling, as the decision needs it."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from enum import StrEnum

from orgs.roles import Role


class PrincipalKind(StrEnum):
    """A person or a service account."""

    PERSON = "person"
    SERVICE = "service"


@dataclass(frozen=True, slots=True)
class Principal:
    """One caller in one organization: looked up, never carried in a token.

    `granted_vendors` is None for an unrestricted service account; an empty set allows none (D173).
    `team_ids` stand oldest team first.
    """

    kind: PrincipalKind
    subject: str
    label: str
    org_id: uuid.UUID
    role: Role
    team_ids: tuple[uuid.UUID, ...]
    granted_vendors: frozenset[str] | None
    scopes: frozenset[str]
    client_pk: uuid.UUID
    client_id: str
    client_name: str
    user_id: uuid.UUID | None = None

    @property
    def service_client_pk(self) -> uuid.UUID | None:
        """The service client whose own credentials apply, or None for a person."""
        return self.client_pk if self.kind is PrincipalKind.SERVICE else None
