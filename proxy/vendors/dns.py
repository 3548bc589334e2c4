"""Looks up host names in threads, shared fairly: the system's resolver blocks, and cannot be cancelled."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Hashable

from gateway.lib.outbound import lookup
from proxy.single_flight import SingleFlight
from proxy.vendors import errors
from proxy.vendors.fair_semaphore import FairSemaphore, QueueFull

CATALOG_LOOKUPS = 8  # in parallel
CREDENTIAL_LOOKUPS = 32  # in parallel
LOOKUPS_PER_OWNER = 4  # in parallel, of one organization
LOOKUPS_FREE_RATIO = 0.5  # with ten organizations whose name servers are silent, another still finds a thread
MAX_QUEUED_LOOKUPS = 2_000  # in line, over all organizations


class Resolver:
    """One event loop. Equal look-ups share one thread, which they hold until the resolver returns."""

    def __init__(self) -> None:
        self._catalog_slots = asyncio.Semaphore(CATALOG_LOOKUPS)
        self._credential_slots = FairSemaphore(
            CREDENTIAL_LOOKUPS,
            free_ratio=LOOKUPS_FREE_RATIO,
            max_per_owner=LOOKUPS_PER_OWNER,
            max_queued=MAX_QUEUED_LOOKUPS,
        )
        self._running: SingleFlight[tuple[Hashable, str, int], list[str]] = SingleFlight()

    async def resolve(self, host: str, port: int, owner: Hashable = None) -> list[str]:
        """Each address once; `owner` None: the catalog. Raises: as `lookup`; VendorProblem when the line is full."""
        return await self._running.run((owner, host, port), lambda: self._resolve(host, port, owner))

    async def _resolve(self, host: str, port: int, owner: Hashable) -> list[str]:
        if owner is None:
            async with self._catalog_slots:
                return await _in_thread(host, port)
        if not self._credential_slots.try_acquire(owner):
            try:
                await self._credential_slots.acquire(owner)
            except QueueFull:
                raise errors.unavailable("Too many host names are waiting to be looked up.") from None
        try:
            return await _in_thread(host, port)
        finally:
            self._credential_slots.release(owner)


async def _in_thread(host: str, port: int) -> list[str]:
    """`lookup` in a daemon thread, which does not delay the end of the process. Raises: as `lookup`."""
    result = await _start_lookup(host, port)
    try:
        if isinstance(result, Exception):
            raise result
        return result
    finally:
        del result  # the traceback refers to this frame: a reference cycle


def _start_lookup(host: str, port: int) -> asyncio.Future[list[str] | Exception]:
    loop = asyncio.get_running_loop()
    found: asyncio.Future[list[str] | Exception] = loop.create_future()

    def set_result(result: list[str] | Exception) -> None:
        if not found.done():
            found.set_result(result)

    def run_lookup() -> None:
        result: list[str] | Exception
        try:
            result = lookup(host, port)
        except Exception as fault:  # any error must free the thread's place
            result = fault
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(set_result, result)

    threading.Thread(target=run_lookup, name="name-lookup", daemon=True).start()
    return found
