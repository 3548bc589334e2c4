"""Work that is repeated as long as an event loop runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

log = structlog.get_logger(__name__)


async def run_periodically(work: Callable[[], Awaitable[object] | None], every_s: float, failure: str) -> None:
    """Run `work`, wait `every_s` seconds and begin again, until cancelled. `failure` is the log line of a failed round.

    A failure does not end the later rounds.
    """
    while True:
        try:
            pending = work()
            if pending is not None:
                await pending
        except Exception:
            log.exception(failure)
        await asyncio.sleep(every_s)
