"""Tool lists by credential: a vendor may show each credential other tools. Spec: D67, D78"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from audit.actor import Actor
from credentials.credential_scope import CredentialScope
from credentials.selectors import CredentialSummary, credential_summaries
from gateway.lib.sentences import sentence
from orgs.models import Organization
from orgs.services.known_tools import GENERAL_LIST, record_tools


class CredentialDeleted(Exception):
    """The credential was deleted while its list was fetched."""


def record_list(
    *,
    organization: Organization,
    vendor: str,
    credential_id: UUID,
    # As for record_tools.
    definitions: Mapping[str, bytes],
    actor: Actor,
) -> frozenset[str]:
    """The names of tools that differ from the approved list. Raises: CredentialDeleted; NotFound when the organization
    is gone.
    """
    scopes = list_scopes(credential_summaries(organization, vendor=vendor))
    scope = scopes.get(credential_id)
    if scope is None:
        raise CredentialDeleted
    return record_tools(
        organization=organization,
        vendor=vendor,
        definitions=definitions,
        credential_scope=scope,
        current_scopes=list(scopes.values()),
        actor=actor,
    )


def list_scopes(found: Sequence[CredentialSummary]) -> dict[UUID, str]:
    """List name by credential of one vendor; "" is the general list."""
    if not found:
        return {}
    order = list(CredentialScope)
    # The credential with the most general scope has the general list; of several, the oldest.
    general = min(found, key=lambda each: (order.index(each.scope), each.created_at, each.id))
    # A replaced or reconnected credential keeps its list, so that its tools do not count as new.
    return {each.id: GENERAL_LIST if each is general else _scope_and_owner(each)[0] for each in found}


def list_owners(found: Sequence[CredentialSummary]) -> dict[str, str]:
    """By name of a further list: its owner in words."""
    scopes = list_scopes(found)
    return dict(_scope_and_owner(each) for each in found if scopes[each.id] != GENERAL_LIST)


def _scope_and_owner(found: CredentialSummary) -> tuple[str, str]:
    """(name of a further list in the database, its owner in words)."""
    match found.scope:
        case CredentialScope.TEAM:
            return f"team:{found.team_id}", sentence("the team %(name)s", name=found.team_name)
        case CredentialScope.SERVICE_CLIENT:
            return f"service_client:{found.service_client_id}", sentence(
                "the agent %(name)s", name=found.service_client_name
            )
        case CredentialScope.NAMED_KEY:
            return f"named_key:{found.id}", sentence("the key %(name)s", name=found.name)
    return found.scope.value, sentence("the organization")
