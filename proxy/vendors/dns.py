"""Looks up host names in threads, shared fairly: the system's resolver blocks, and cannot be cancelled."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Hashable

from proxy.single_flight import SingleFlight
from proxy.vendors import errors
from proxy.vendors.fair_semaphore import FairSemaphore, QueueFull

CATALOG_LOOKUPS = 8  # in parallel
CREDENTIAL_LOOKUPS = 32  # in parallel
LOOKUPS_OF_ONE = 4  # in parallel, of one organization
LOOKUPS_OF_FREE = 0.5  # with ten organizations whose name servers are silent, another still finds a thread
LOOKUPS_WAITING = 2_000  # in line, over all organizations


class Names:
    """One event loop. Equal look-ups share one thread, which they hold until the resolver returns."""

    def __init__(self) -> None:
        self._of_catalog = asyncio.Semaphore(CATALOG_LOOKUPS)
        self._of_credentials = FairSemaphore(
            CREDENTIAL_LOOKUPS, of_free=LOOKUPS_OF_FREE, most_of_one=LOOKUPS_OF_ONE, waiting=LOOKUPS_WAITING
        )
        self._running: SingleFlight[tuple[Hashable, str, int], list[str]] = SingleFlight()

    async def addresses(self, host: str, port: int, owner: Hashable = None) -> list[str]:
        """Each address once; `owner` None: the catalog. Raises: as `look_up`; VendorProblem when the line is full."""
        return await self._running.run((owner, host, port), lambda: self._ask(host, port, owner))

    async def _ask(self, host: str, port: int, owner: Hashable) -> list[str]:
        if owner is None:
            async with self._of_catalog:
                return await _in_thread(host, port)
        if not self._of_credentials.take(owner):
            try:
                await self._of_credentials.wait(owner)
            except QueueFull:
                raise errors.unavailable("Too many host names wait to be looked up.") from None
        try:
            return await _in_thread(host, port)
        finally:
            self._of_credentials.give_back(owner)


def look_up(host: str, port: int) -> list[str]:
    """Blocks until the system's resolver returns. Raises: OSError (socket.gaierror is one), UnicodeError."""
    rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in rows))


async def _in_thread(host: str, port: int) -> list[str]:
    """`look_up` in a daemon thread, which does not delay the end of the process. Raises: as `look_up`."""
    answer = await _answer(host, port)
    try:
        if isinstance(answer, Exception):
            raise answer
        return answer
    finally:
        del answer  # the traceback refers to this frame: a reference cycle


def _answer(host: str, port: int) -> asyncio.Future[list[str] | Exception]:
    loop = asyncio.get_running_loop()
    answered: asyncio.Future[list[str] | Exception] = loop.create_future()

    def tell(answer: list[str] | Exception) -> None:
        if not answered.done():
            answered.set_result(answer)

    def ask() -> None:
        answer: list[str] | Exception
        try:
            answer = look_up(host, port)
        except Exception as fault:  # any error must free the thread's place
            answer = fault
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(tell, answer)

    threading.Thread(target=ask, name="name-lookup", daemon=True).start()
    return answered
