"""Rows of both logs whose ids tell their times, as the writers make them."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from itertools import count
from typing import Any

from audit.event_types import EventType
from audit.models import AdminAuditEntry, RequestAuditEntry
from gateway.lib import ids
from tests.api.audit.rows import NOON, add_row, make_record

__all__ = ["NOON", "add_call", "add_calls", "add_change", "log_id"]


_numbers = count(1)


def log_id(at: datetime) -> uuid.UUID:
    """An id of this millisecond, above all others of it."""
    return ids.log_id_at(int(at.timestamp() * 1000), next(_numbers).to_bytes(10, "big"))


def add_call(org_id: uuid.UUID, *, minutes: float = 0, **changes: Any) -> RequestAuditEntry:
    """A call, so many minutes after noon."""
    at = NOON + timedelta(minutes=minutes)
    extra = {name: changes.pop(name) for name in ("count",) if name in changes}
    row = add_row(**{"org_id": org_id, "id": log_id(at), "timestamp": at, **changes})
    if extra:
        RequestAuditEntry.objects.filter(pk=row.pk).update(**extra)
    return row


def add_calls(org_id: uuid.UUID, number: int, **changes: Any) -> None:
    """So many calls, one each second before noon, the newest with the request id `r-0`."""
    times = [NOON - timedelta(seconds=back) for back in range(number)]
    rows = [
        make_record(org_id=org_id, id=log_id(at), timestamp=at, request_id=f"r-{back}", **changes)
        for back, at in enumerate(times)
    ]
    names = rows[0].__struct_fields__
    RequestAuditEntry.objects.bulk_create(
        RequestAuditEntry(**{name: getattr(row, name) for name in names}) for row in rows
    )


def add_change(org_id: uuid.UUID, *, minutes: float = 0, **changes: Any) -> AdminAuditEntry:
    """An administrative change, so many minutes after noon."""
    at = NOON + timedelta(minutes=minutes)
    facts = {
        "org_id": org_id,
        "id": log_id(at),
        "timestamp": at,
        "event_type": EventType.MEMBER_REMOVED.value,
        "actor_id": "user-1",
        "actor_label": "Ana",
        "target_id": "user-2",
        "target_label": "Ben",
    }
    return AdminAuditEntry.objects.create(**{**facts, **changes})
