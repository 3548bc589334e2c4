"""What host names mean: asked in threads that no tenant can use up.

The system's resolver blocks, and goes on for as long as a name server says nothing, whoever has given up meanwhile. So
names of the catalog have room of their own, and of the room for names from credentials each organization has a share
that leaves some for the others.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Hashable

from proxy.single_flight import SingleFlight
from proxy.vendors import errors
from proxy.vendors.fair_semaphore import FairSemaphore, LineTooLong

CATALOG_LOOKUPS = 8  # at once
CREDENTIAL_LOOKUPS = 32
LOOKUPS_OF_ONE = 4
LOOKUPS_OF_FREE = 0.5  # ten organizations whose name servers say nothing leave room for another
LOOKUPS_WAITING = 2_000


class Names:
    """Belongs to one event loop. A look-up is shared by all who ask the same, and holds its room until it has ended."""

    def __init__(self) -> None:
        self._of_catalog = asyncio.Semaphore(CATALOG_LOOKUPS)
        self._of_credentials = FairSemaphore(
            CREDENTIAL_LOOKUPS, of_free=LOOKUPS_OF_FREE, most_of_one=LOOKUPS_OF_ONE, waiting=LOOKUPS_WAITING
        )
        self._running: SingleFlight[tuple[Hashable, str, int], list[str]] = SingleFlight()

    async def addresses(self, host: str, port: int, owner: Hashable = None) -> list[str]:
        """Every address of `host`, each once. `owner` is whose name it is; None for the catalog's.

        Raises: as `look_up`; VendorProblem when too many wait.
        """
        return await self._running.run((owner, host, port), lambda: self._ask(host, port, owner))

    async def _ask(self, host: str, port: int, owner: Hashable) -> list[str]:
        if owner is None:
            async with self._of_catalog:
                return await _in_thread(host, port)
        if not self._of_credentials.take(owner):
            try:
                await self._of_credentials.wait(owner)
            except LineTooLong:
                raise errors.unavailable("Too many host names wait to be looked up.") from None
        try:
            return await _in_thread(host, port)
        finally:
            self._of_credentials.give_back(owner)


def look_up(host: str, port: int) -> list[str]:
    """Ask the system's resolver, however long it takes. Raises: OSError (socket.gaierror is one), UnicodeError."""
    rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in rows))


async def _in_thread(host: str, port: int) -> list[str]:
    """`look_up` in a thread of its own that the end of the process does not wait for. Raises: the same."""
    answer = await _answer(host, port)
    try:
        if isinstance(answer, Exception):
            raise answer
        return answer
    finally:
        del answer  # what is raised knows this frame


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
        except Exception as fault:  # whatever it is, the look-up is over and its room free
            answer = fault
        with contextlib.suppress(RuntimeError):  # the loop has been closed meanwhile
            loop.call_soon_threadsafe(tell, answer)

    threading.Thread(target=ask, name="name-lookup", daemon=True).start()
    return answered
