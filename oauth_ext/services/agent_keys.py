"""Mints, replaces and revokes agent keys. A service client has one, and during an overlap the one before it."""

from __future__ import annotations

from dataclasses import dataclass, field

from django.db import transaction

from audit.actor import Actor
from audit.event_types import EventType
from gateway.lib import clock, secrets
from gateway.lib.errors import Conflict
from gateway.lib.revocation_journal import End, EndKind, note
from gateway.lib.rows import required_row
from gateway.lib.sentences import sentence
from oauth_ext import agent_key_format
from oauth_ext.agent_key_format import AgentKeyParts
from oauth_ext.models import AgentKey, Client
from oauth_ext.services.overlap import overlap_end
from oauth_ext.services.service_clients import locked_service_client, record_client_change
from orgs.models import User
from orgs.notices import NEW_AGENT_KEY, tell_owners


@dataclass(frozen=True, slots=True)
class MintedAgentKey:
    agent_key: str = field(repr=False)  # shown once, never stored
    prefix: str
    rotated: bool  # an earlier key was replaced


@transaction.atomic
def mint_agent_key(*, actor: User, client: Client, overlap_hours: int = 0) -> MintedAgentKey:
    """`overlap_hours`: how long an earlier key works beside the new one.

    Raises: Invalid; NotFound for a deleted client; Forbidden; Conflict for an expired one. Spec: §4.8 · D72-D74, D171
    """
    now = clock.now()
    ends_at = overlap_end(overlap_hours, now)
    # The lock serialises two mints: the second sees the first one's key and replaces it.
    locked, org_id = locked_service_client(actor=actor, client=client)
    if locked.is_expired():
        raise Conflict(sentence("This agent has expired. Extend it to create a new key."))
    keys = AgentKey.objects.filter(client=locked)
    # One old key at most: another rotation ends it.
    keys.filter(ends_at__isnull=False).delete()
    replaced = keys.first()
    if ends_at is None:
        keys.delete()
    else:
        keys.update(ends_at=ends_at)
        if replaced is not None:
            note(End(EndKind.AGENT_KEY, str(replaced.pk), until=ends_at))
    parts = random_parts()
    AgentKey.objects.create(
        client=locked,
        prefix=parts.prefix,
        secret_sha256=secrets.sha256(parts.secret),
        created_by=actor,
        created_at=now,
    )
    if replaced is None:
        record_client_change(EventType.AGENT_KEY_CREATED, org_id, actor, locked, prefix=parts.prefix)
    else:
        facts = {"prefix": parts.prefix, "previous_prefix": replaced.prefix, "overlap_hours": overlap_hours}
        record_client_change(EventType.AGENT_KEY_ROTATED, org_id, actor, locked, **facts)
    tell_owners(
        NEW_AGENT_KEY, organization_id=org_id, actor=actor, also=[actor], agent=locked.name, prefix=parts.prefix
    )
    return MintedAgentKey(agent_key=parts.text(), prefix=parts.prefix, rotated=replaced is not None)


@transaction.atomic
def revoke_agent_key(*, actor: User | Actor, client: Client) -> None:
    """Ends a key before it too, and an expired client's. Raises: NotFound without a key; Forbidden. Spec: §3, §4.8"""
    locked, org_id = locked_service_client(actor=actor, client=client)
    keys = AgentKey.objects.filter(client=locked)
    row = required_row(keys.filter(ends_at=None))
    keys.delete()
    record_client_change(EventType.AGENT_KEY_REVOKED, org_id, actor, locked, prefix=row.prefix)


@transaction.atomic
def end_agent_key(*, actor: User | Actor, key: AgentKey) -> None:
    """A rotated key ends alone; with the current key, the one before it ends too. Raises: NotFound, Forbidden."""
    locked, org_id = locked_service_client(actor=actor, client=key.client)
    keys = AgentKey.objects.filter(client=locked)
    row = required_row(keys.filter(pk=key.pk))
    # The row under the lock says: the key may have been rotated since it was read.
    (keys if row.ends_at is None else keys.filter(pk=row.pk)).delete()
    record_client_change(EventType.AGENT_KEY_REVOKED, org_id, actor, locked, prefix=row.prefix)


def random_parts() -> AgentKeyParts:
    return agent_key_format.build(
        secrets.random_base62(agent_key_format.PUBLIC_CHARACTERS),
        secrets.random_base62(agent_key_format.SECRET_CHARACTERS),
    )
