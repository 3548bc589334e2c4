"""A vendor may show each credential other tools: the name of each credential's list, and its comparison.

The general list is that of the most general credential, of several the oldest.   Spec: D67, D78
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from audit.actor import Actor
from credentials.scopes import CredentialScope
from credentials.selectors import Connection, connections
from orgs.models import Organization
from orgs.services.known_tools import GENERAL_LIST, note_tools


class CredentialGone(Exception):
    """The credential that a list was fetched with was deleted meanwhile."""


def note_list(
    *,
    organization: Organization,
    vendor: str,
    credential_id: UUID,
    definitions: Mapping[str, bytes],
    actor: Actor,
) -> frozenset[str]:
    """Compare the list that a credential shows. Returns the tools on it that are not as they were approved.

    `definitions`: as for note_tools.
    Raises: CredentialGone; NotFound when the organization is gone.
    """
    scopes = list_scopes(connections(organization, vendor=vendor))
    scope = scopes.get(credential_id)
    if scope is None:
        raise CredentialGone
    return note_tools(
        organization=organization,
        vendor=vendor,
        definitions=definitions,
        credential_scope=scope,
        current_scopes=list(scopes.values()),
        actor=actor,
    )


def list_scopes(found: Sequence[Connection]) -> dict[UUID, str]:
    """By credential of one vendor: the name of its list, "" for the general one.

    A credential that is replaced or connected again keeps its list, so that nothing on it counts as seen first.
    """
    if not found:
        return {}
    order = list(CredentialScope)
    general = min(found, key=lambda each: (order.index(each.scope), each.created_at, each.id))
    return {each.id: GENERAL_LIST if each is general else _scope_and_owner(each)[0] for each in found}


def list_owners(found: Sequence[Connection]) -> dict[str, str]:
    """By scope of a further list: whose key shows it, in words."""
    scopes = list_scopes(found)
    return dict(_scope_and_owner(each) for each in found if scopes[each.id] != GENERAL_LIST)


def _scope_and_owner(found: Connection) -> tuple[str, str]:
    """The name of a further list in the database, and whose key shows it, in words."""
    match found.scope:
        case CredentialScope.TEAM:
            return f"team:{found.team_id}", f"the team {found.team_name}"
        case CredentialScope.SERVICE_CLIENT:
            return f"service_client:{found.service_client_id}", f"the agent {found.service_client_name}"
        case CredentialScope.NAMED_KEY:
            return f"named_key:{found.id}", f"the key {found.name}"
    return found.scope.value, "the organization"
