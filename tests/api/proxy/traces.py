"""The traces that calls leave behind, and waiting for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from audit.models import RequestAuditEntry
from proxy import runtime
from tests.factories.threads import in_thread


async def rows() -> list[RequestAuditEntry]:
    """The request log, oldest first."""
    return await in_thread(lambda: list(RequestAuditEntry.objects.order_by("timestamp", "id")))


def busy_connections() -> int:
    """How many connections to vendors are in use by this loop."""
    return sum(len(one._busy) for one in runtime.current().transport._by_origin.values())


async def until(condition: Callable[[], object]) -> None:
    """Wait for what comes about on its own; a busy machine takes its time."""
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)
