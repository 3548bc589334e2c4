"""Admin audit rows, written in the transaction of the change: both are stored, or neither."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

import structlog
from django.db import transaction

from audit.actor import Actor, Target
from audit.event_types import EventType
from audit.models import AdminAuditEntry
from audit.plain_text import plain_text
from audit.stream_position import NewPosition
from gateway.lib import clock, ids
from gateway.lib.masking import mask_text

METADATA_TEXT_CHARACTERS = 1_000  # of one text
LABEL_CHARACTERS = 200
# Names in the log context, of a request that a management token authenticates.
TOKEN_HOLDER, TOKEN_NAME, TOKEN_PREFIX = "token_holder", "token_name", "token_prefix"
METADATA_DEPTH = 4  # deeper values become text


@dataclass(frozen=True, slots=True)
class AdminEvent:
    event_type: EventType
    target: Target | None = None
    metadata: Mapping[str, object] | None = None


def record_admin(
    event_type: EventType,
    *,
    org_id: uuid.UUID,
    actor: Actor,
    target: Target | None = None,
    metadata: Mapping[str, object] | None = None,
) -> AdminAuditEntry:
    """Raises: RuntimeError outside a transaction. Spec: §2 · D81, D82"""
    # `metadata` must hold no secret. Values other than text, numbers, booleans, None, lists and mappings become text.
    return record_admin_rows([AdminEvent(event_type, target, metadata)], org_id=org_id, actor=actor)[0]


def record_admin_rows(events: Sequence[AdminEvent], *, org_id: uuid.UUID, actor: Actor) -> list[AdminAuditEntry]:
    """Writes all rows in one statement. Raises: RuntimeError outside a transaction."""
    if not transaction.get_connection().in_atomic_block:
        # Otherwise a row without its change, or the reverse, would be possible.
        raise RuntimeError("an admin audit row belongs in the transaction that makes the change")
    return AdminAuditEntry.objects.bulk_create(_row(each, org_id, actor) for each in events)


def _row(event: AdminEvent, org_id: uuid.UUID, actor: Actor) -> AdminAuditEntry:
    # Address and request id come from the log context.
    context = structlog.contextvars.get_contextvars()
    target = event.target
    now = clock.whole_milliseconds(clock.now())
    return AdminAuditEntry(
        id=ids.log_id_for(now),
        timestamp=now,
        position=NewPosition(),
        org_id=org_id,
        event_type=EventType(event.event_type).value,
        actor_id=plain_text(actor.id, max_characters=120),
        actor_label=plain_text(label_with_token(actor), max_characters=LABEL_CHARACTERS),
        target_id=plain_text(target.id, max_characters=120) if target else "",
        target_label=plain_text(target.label, max_characters=200) if target else "",
        metadata=_plain(event.metadata or {}, METADATA_DEPTH),
        ip_address=plain_text(str(context.get("ip_address", "")), max_characters=45),
        request_id=plain_text(str(context.get("request_id", "")), max_characters=64),
    )


def label_with_token(actor: Actor) -> str:
    """The actor's name, and the management token that the person uses in this request."""
    context = structlog.contextvars.get_contextvars()
    if context.get(TOKEN_HOLDER) != actor.id:
        return actor.label
    token = f" (token {context.get(TOKEN_NAME)}, {context.get(TOKEN_PREFIX)})"
    return actor.label[: LABEL_CHARACTERS - len(token)] + token


def _plain(value: object, depth: int) -> object:
    """Returns JSON that both databases accept, without text that looks like a secret."""
    if value is None or isinstance(value, bool | int) or (isinstance(value, float) and isfinite(value)):
        return value
    if depth > 0 and isinstance(value, Mapping):
        return {plain_text(str(name), max_characters=100): _plain(part, depth - 1) for name, part in value.items()}
    if depth > 0 and isinstance(value, list | tuple | set | frozenset):
        return [_plain(part, depth - 1) for part in value]
    return plain_text(mask_text(str(value)), max_characters=METADATA_TEXT_CHARACTERS)
