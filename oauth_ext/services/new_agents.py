"""Makes a service client with its limits and its agent key in one step, as the page for a new agent does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from django.db import transaction

from oauth_ext.models import Client
from oauth_ext.models.client import ToolMode
from oauth_ext.services.agent_keys import mint_agent_key
from oauth_ext.services.service_client_vendors import replace_client_vendors
from oauth_ext.services.service_clients import create_service_client
from orgs.models import Organization, User


@dataclass(frozen=True, slots=True)
class NewAgent:
    client: Client
    agent_key: str = field(repr=False)  # shown once, never stored


@transaction.atomic
def create_agent(
    *,
    actor: User,
    organization: Organization,
    name: str,
    expires_in_days: int,
    vendors: Sequence[str] | None,
    is_read_only: bool,
    lists_compactly: bool = False,
) -> NewAgent:
    """All of it or nothing. `vendors`: None for every vendor. The client secret is shown after its first rotation.

    Raises: Invalid with `fields`; LimitReached; NotFound, Forbidden. Spec: §4.8 · D70, D72, D165, D173
    """
    created = create_service_client(
        actor=actor,
        organization=organization,
        name=name,
        expires_in_days=expires_in_days,
        tool_mode=ToolMode.READ_ONLY if is_read_only else ToolMode.ALL,
        lists_compactly=lists_compactly,
    )
    if vendors is not None:
        replace_client_vendors(actor=actor, organization=organization, client=created.client, vendors=vendors)
    minted = mint_agent_key(actor=actor, client=created.client)
    return NewAgent(created.client, minted.agent_key)
