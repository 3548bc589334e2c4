"""Pure: the caller, as the access decision needs it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from orgs.allowed_items import OwnItemLists
from orgs.roles import Role


class PrincipalKind(StrEnum):
    PERSON = "person"
    SERVICE = "service"


@dataclass(frozen=True, slots=True)
class Agent:
    """A service client in a call that it makes for a person. `vendors`: None for an unrestricted one."""

    name: str
    vendors: frozenset[str] | None


@dataclass(frozen=True, slots=True)
class Principal:
    """One caller in one organization, looked up for every call; a token carries none of this. Spec: D173

    `granted_vendors`: None for an unrestricted service client; an empty set allows none. `team_ids`: oldest first.
    `own_allowlists`: by vendor, the tools of a service client with a list of its own; also of `agent`.
    """

    kind: PrincipalKind
    subject: str
    label: str
    org_id: uuid.UUID
    role: Role
    team_ids: tuple[uuid.UUID, ...]
    granted_vendors: frozenset[str] | None
    scopes: frozenset[str]
    # The OAuth client of the token: a service client is itself such a client.
    client_pk: uuid.UUID
    client_id: str
    client_name: str
    user_id: uuid.UUID | None = None
    own_allowlists: Mapping[str, frozenset[str]] | None = None
    # Its lists of resources and prompts.
    own_item_lists: OwnItemLists | None = None
    # A service client that may call only what is marked read-only.
    is_read_only: bool = False
    # A service client to which /v1/mcp lists three tools in place of all.
    lists_compactly: bool = False
    # The service client that acts for the person: its lists and its mode count beside the person's rights.
    agent: Agent | None = None

    @property
    def service_client_pk(self) -> uuid.UUID | None:
        return self.client_pk if self.kind is PrincipalKind.SERVICE else None
