"""What host names mean: asked in threads that no tenant can use up.

The system's resolver blocks, and goes on for as long as a name server says nothing, whoever has given up meanwhile. So
names of the catalog have room of their own, and of the room for names from credentials each organization has a share.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Hashable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from proxy.single_flight import SingleFlight

CATALOG_LOOKUPS = 8  # at once
CREDENTIAL_LOOKUPS = 16
LOOKUPS_OF_ONE = 4


@dataclass(slots=True)
class _Share:
    """One organization's; forgotten when nobody uses it."""

    users: int = 0
    room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(LOOKUPS_OF_ONE))


class Names:
    """Belongs to one event loop. A look-up is shared by all who ask the same, and holds its room until it has ended."""

    def __init__(self) -> None:
        self._of_catalog = asyncio.Semaphore(CATALOG_LOOKUPS)
        self._of_credentials = asyncio.Semaphore(CREDENTIAL_LOOKUPS)
        self._shares: dict[Hashable, _Share] = {}
        self._running: SingleFlight[tuple[Hashable, str, int], list[str]] = SingleFlight()

    async def addresses(self, host: str, port: int, owner: Hashable = None) -> list[str]:
        """Every address of `host`, each once. `owner` is whose name it is; None for the catalog's.

        Raises: as `look_up`.
        """
        return await self._running.run((owner, host, port), lambda: self._ask(host, port, owner))

    async def _ask(self, host: str, port: int, owner: Hashable) -> list[str]:
        async with AsyncExitStack() as room:
            if owner is None:
                await room.enter_async_context(self._of_catalog)
            else:
                share = self._shares.setdefault(owner, _Share())
                share.users += 1
                room.callback(self._left, owner, share)
                await room.enter_async_context(share.room)
                await room.enter_async_context(self._of_credentials)
            return await _in_thread(host, port)

    def _left(self, owner: Hashable, share: _Share) -> None:
        share.users -= 1
        if not share.users:
            del self._shares[owner]


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
