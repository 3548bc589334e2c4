"""Pure: a row of a log as the event that is shipped. Every platform's field names are made from it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

REQUEST, ADMIN = "tool_call", "admin_change"  # types of events


@dataclass(frozen=True, slots=True)
class Event:
    """`fields` are those of the row over /api/audit, without nulls and empty texts; `id` is the row's."""

    id: str
    type: str
    time: datetime
    fields: Mapping[str, Any]

    @property
    def is_tool_call(self) -> bool:
        return self.type == REQUEST


class RequestRow(Protocol):
    """A row of the request log."""

    id: uuid.UUID
    timestamp: datetime
    org_id: uuid.UUID
    user_id: str
    user_label: str
    vendor: str
    tool: str
    source: str
    status: str
    error_code: str
    duration_ms: int
    vendor_ms: int
    credential_scope: str
    credential_name: str
    cached: bool
    client_id: str
    client_name: str
    ip_address: str
    request_id: str
    request_bytes: int
    response_bytes: int
    count: int


class AdminRow(Protocol):
    """A row of the admin log."""

    id: uuid.UUID
    timestamp: datetime
    org_id: uuid.UUID
    event_type: str
    actor_id: str
    actor_label: str
    target_id: str
    target_label: str
    metadata: Any
    ip_address: str
    request_id: str


def event_of_call(row: RequestRow) -> Event:
    """The outcome of one tool call; a count above 1 stands for the rate-limited calls of a subject in one minute."""
    return Event(
        str(row.id),
        REQUEST,
        row.timestamp,
        _without_blanks(
            orgId=str(row.org_id),
            userId=row.user_id,
            userLabel=row.user_label,
            vendor=row.vendor,
            tool=row.tool,
            source=row.source,
            status=row.status,
            errorCode=row.error_code,
            durationMs=row.duration_ms,
            vendorMs=row.vendor_ms,
            credentialScope=row.credential_scope,
            credentialName=row.credential_name,
            cached=row.cached,
            clientId=row.client_id,
            clientName=row.client_name,
            ipAddress=row.ip_address,
            requestId=row.request_id,
            requestBytes=row.request_bytes,
            responseBytes=row.response_bytes,
            count=row.count,
        ),
    )


def event_of_change(row: AdminRow) -> Event:
    """One administrative change."""
    return Event(
        str(row.id),
        ADMIN,
        row.timestamp,
        _without_blanks(
            orgId=str(row.org_id),
            eventType=row.event_type,
            actorId=row.actor_id,
            actorLabel=row.actor_label,
            targetId=row.target_id,
            targetLabel=row.target_label,
            metadata=row.metadata or None,
            ipAddress=row.ip_address,
            requestId=row.request_id,
        ),
    )


def _without_blanks(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None and value != ""}
