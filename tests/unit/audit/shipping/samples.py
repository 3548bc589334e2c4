"""One event of each kind, an answer and a target, as the platforms' tests use them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from audit.shipping.events import ADMIN, REQUEST, Event
from audit.shipping.platforms.exchange import Answer, Target

NOW = datetime(2026, 3, 4, 5, 6, 7, 890123, tzinfo=UTC)
ORG = "0c8c5a5e-90d5-4a0e-9a53-0d4ec1a0b2c3"

CALL = Event(
    "11111111-1111-7111-8111-111111111111",
    REQUEST,
    datetime(2026, 3, 4, 5, 6, 1, 234567, tzinfo=UTC),
    {
        "orgId": ORG,
        "userId": "ada-id",
        "userLabel": "ada@example.com",
        "vendor": "acme",
        "tool": "list_devices",
        "source": "mcp",
        "status": "error",
        "errorCode": "vendor_timeout",
        "durationMs": 1204,
        "vendorMs": 1187,
        "credentialScope": "team",
        "credentialName": "default",
        "cached": False,
        "clientId": "cl-1",
        "clientName": "Editor",
        "ipAddress": "203.0.113.7",
        "requestId": "req-1",
        "requestBytes": 321,
        "responseBytes": 0,
        "count": 1,
    },
)
CHANGE = Event(
    "22222222-2222-7222-8222-222222222222",
    ADMIN,
    datetime(2026, 3, 4, 5, 6, 2, tzinfo=UTC),
    {
        "orgId": ORG,
        "eventType": "member.role_changed",
        "actorId": "ada-id",
        "actorLabel": "ada@example.com",
        "targetId": "bob-id",
        "targetLabel": "bob@example.com",
        "metadata": {"from": "member", "to": "admin", "teams": ["core", None], "share": 0.5, "silent": True},
        "ipAddress": "203.0.113.7",
        "requestId": "req-2",
    },
)
BOTH = [CALL, CHANGE]


def target(url: str, **config: str) -> Target:
    return Target(url, config)


def answer(status: int, body: bytes | str = b"", headers: Mapping[str, str] | None = None) -> Answer:
    return Answer(status, headers or {}, body.encode() if isinstance(body, str) else body)
