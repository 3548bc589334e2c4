"""One event of each type with every field, made from rows; an answer and a target, as the platforms' tests use them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import httpx

from audit.models import AdminAuditEntry, RequestAuditEntry
from audit.shipping.events import Event, event_of_call, event_of_change
from audit.shipping.platforms.exchange import Answer, Target

NOW = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
ORG = UUID("11111111-1111-4111-8111-111111111111")
PERSON = "22222222-2222-4222-8222-222222222222"
CALL_ID = "019a0000-0000-7000-8000-000000000001"
CHANGE_ID = "019a0000-0000-7000-8000-000000000002"


def a_call(**columns: Any) -> Event:
    row = {
        "id": UUID(CALL_ID),
        "timestamp": datetime(2026, 11, 23, 10, 15, 30, 123000, tzinfo=UTC),
        "org_id": ORG,
        "user_id": PERSON,
        "user_label": "Ana Ek",
        "vendor": "acme",
        "tool": "list_devices",
        "source": "mcp",
        "status": "error",
        "error_code": "vendor_timeout",
        "duration_ms": 1500,
        "vendor_ms": 1400,
        "credential_scope": "team",
        "credential_name": "Blue",
        "cached": False,
        "client_id": "client-1",
        "client_name": "Editor",
        "ip_address": "203.0.113.7",
        "request_id": "req-1",
        "request_bytes": 120,
        "response_bytes": 4500,
        "count": 1,
    }
    return event_of_call(RequestAuditEntry(**{**row, **columns}))


def a_change(**columns: Any) -> Event:
    row = {
        "id": UUID(CHANGE_ID),
        "timestamp": datetime(2026, 11, 23, 10, 15, 31, tzinfo=UTC),
        "org_id": ORG,
        "event_type": "member.role_changed",
        "actor_id": PERSON,
        "actor_label": "Ana Ek",
        "target_id": "33333333-3333-4333-8333-333333333333",
        "target_label": "Bo Li",
        "metadata": {"role": "admin", "was": "member"},
        "ip_address": "2001:db8::7",
        "request_id": "req-2",
    }
    return event_of_change(AdminAuditEntry(**{**row, **columns}))


CALL, CHANGE = a_call(), a_change()
BATCH = [CALL, CHANGE]


def target(url: str, **config: str) -> Target:
    return Target(url, config)


def answer(status: int, body: bytes | str = b"", headers: Mapping[str, str] | None = None) -> Answer:
    """The names of headers match in any case."""
    return Answer(status, httpx.Headers(headers), body.encode() if isinstance(body, str) else body)
