"""Rows of two organizations for the tests of the logs."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

from msgspec.structs import asdict

from audit.call_record import CallRecord
from audit.models import RequestAuditEntry

ORG = uuid.UUID("11111111-1111-4111-8111-111111111111")
OTHER_ORG = uuid.UUID("22222222-2222-4222-8222-222222222222")
NOON = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)


def make_record(**changes: object) -> CallRecord:
    """A call of ORG, with `changes`."""
    facts = {
        "org_id": ORG,
        "user_id": "user-1",
        "user_label": "Ana",
        "vendor": "acme",
        "tool": "acme_list",
        "source": "mcp",
        "status": "success",
        "request_id": "r-1",
        "timestamp": NOON,
    }
    return CallRecord(**{**facts, **changes})  # type: ignore[arg-type]


def add_row(**changes: object) -> RequestAuditEntry:
    """The same as a row."""
    return RequestAuditEntry.objects.create(**asdict(make_record(**changes)))
