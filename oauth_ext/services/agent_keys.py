"""Mints, replaces and revokes agent keys. A service client has at most one."""

from __future__ import annotations

from dataclasses import dataclass, field

from django.db import transaction

from audit.actor import Actor
from audit.event_types import EventType
from gateway.lib import clock, secrets
from gateway.lib.errors import Conflict
from gateway.lib.rows import required_row
from oauth_ext import agent_key_format
from oauth_ext.agent_key_format import AgentKeyParts
from oauth_ext.models import AgentKey, Client
from oauth_ext.services.service_clients import locked_service_client, record_client_change
from orgs.models import User


@dataclass(frozen=True, slots=True)
class MintedAgentKey:
    agent_key: str = field(repr=False)  # shown once, never stored
    prefix: str
    rotated: bool  # an earlier key was replaced


@transaction.atomic
def mint_agent_key(*, actor: User, client: Client) -> MintedAgentKey:
    """Raises: NotFound for a deleted client; Forbidden; Conflict for an expired one. Spec: §3, §4.8 · D72-D74"""
    # The lock serialises two mints: the second sees the first one's key and replaces it.
    locked, org_id = locked_service_client(actor=actor, client=client)
    if locked.is_expired():
        raise Conflict("This service client has expired. Create a new one for a new key.")
    deleted, _ = AgentKey.objects.filter(client=locked).delete()
    parts = random_parts()
    AgentKey.objects.create(
        client=locked,
        prefix=parts.prefix,
        secret_sha256=secrets.sha256(parts.secret),
        created_by=actor,
        created_at=clock.now(),
    )
    rotated = deleted > 0
    event = EventType.AGENT_KEY_ROTATED if rotated else EventType.AGENT_KEY_CREATED
    record_client_change(event, org_id, actor, locked, prefix=parts.prefix)
    return MintedAgentKey(agent_key=parts.text(), prefix=parts.prefix, rotated=rotated)


@transaction.atomic
def revoke_agent_key(*, actor: User | Actor, client: Client) -> None:
    """An expired client's key too. Raises: NotFound without a key; Forbidden. Spec: §3 Agent key, §4.8"""
    locked, org_id = locked_service_client(actor=actor, client=client)
    row = required_row(AgentKey.objects.filter(client=locked))
    row.delete()
    record_client_change(EventType.AGENT_KEY_REVOKED, org_id, actor, locked, prefix=row.prefix)


def random_parts() -> AgentKeyParts:
    return agent_key_format.build(
        secrets.random_base62(agent_key_format.PUBLIC_CHARACTERS),
        secrets.random_base62(agent_key_format.SECRET_CHARACTERS),
    )
