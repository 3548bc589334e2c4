"""The presence of a web process: other processes seal with a new master key once this one has said that it has it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from gateway.keys import holders
from gateway.keys.presence import Presence
from gateway.lib.periodic import run_periodically
from proxy.hot_path_database import DatabaseUnavailable

log = structlog.get_logger(__name__)
LEAVE_S = 2.0  # of the time that a process has for its stop


async def stay_present(run_in_thread: Callable[[Callable[[], None]], Awaitable[None]]) -> None:
    """Until it is cancelled, and then leave. `run_in_thread` raises DatabaseUnavailable."""
    presence = Presence("web")

    async def note() -> None:
        try:
            await run_in_thread(presence.note)
        except DatabaseUnavailable as fault:
            log.warning("key holder not noted", fault=str(fault))

    try:
        await run_periodically(note, holders.EVERY_S, "key holder not noted")
    finally:
        try:
            async with asyncio.timeout(LEAVE_S):
                await run_in_thread(presence.leave)
        except (DatabaseUnavailable, TimeoutError) as fault:  # others count this process for two more minutes
            log.warning("key holder not removed", fault=str(fault))
