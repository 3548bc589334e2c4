"""A process that notes rate-limited calls of one minute: `python -m tests.faults.refusing_process CALLS MINUTE`.

Reads DATABASE_URL like the service does. Half of the calls of a subject are noted at once, the rest one by one.
"""

from __future__ import annotations

import asyncio
import os
import sys
import uuid
from datetime import UTC, datetime

os.environ["DJANGO_SETTINGS_MODULE"] = "gateway.settings"

import django

django.setup()

from audit.call_record import CallRecord  # noqa: E402
from gateway.coordination import backend  # noqa: E402
from proxy.caller_cache import CallerCache  # noqa: E402
from proxy.rate_limited_calls import RateLimitedCalls  # noqa: E402

ORG = uuid.UUID("11111111-1111-4111-8111-111111111111")
OTHER_ORG = uuid.UUID("22222222-2222-4222-8222-222222222222")
SUBJECT = "user-1"


def first_row(org_id: uuid.UUID, row_id: uuid.UUID, minute: datetime) -> CallRecord:
    """The row as the call path makes it."""
    return CallRecord(
        id=row_id,
        timestamp=minute,
        org_id=org_id,
        user_id=SUBJECT,
        user_label="Ana",
        source="mcp",
        status="denied",
        error_code="rate_limited",
        request_id="r-1",
    )


async def main(calls: int, minute: int) -> None:
    """Note them, one call of the other organization among them, and close."""
    moment = datetime.fromtimestamp(minute * 60 + 30, UTC)
    cache = CallerCache(backend.current())
    counted = RateLimitedCalls(cache, now=lambda: moment)

    async def note(org_id: uuid.UUID) -> None:
        await counted.record(org_id, SUBJECT, lambda row_id, began_at: first_row(org_id, row_id, began_at))

    at_once = calls // 2
    await asyncio.gather(note(OTHER_ORG), *(note(ORG) for _ in range(at_once)))
    for _ in range(calls - at_once):
        await note(ORG)
    await counted.aclose()
    await cache.aclose()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
