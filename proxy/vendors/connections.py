"""Connections to one vendor address: opened when needed, kept for a while, never more than a fixed number.

A name is resolved for every connection, every answer is judged, and the connection goes to a judged address with the
name in SNI and certificate check: what a name means is never asked twice (gateway.lib.outbound).
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cache

from gateway.lib.outbound import AddressRefused, may_connect
from proxy.vendors import errors
from proxy.vendors.errors import Sign
from proxy.vendors.http1 import Connection, Limits
from proxy.vendors.names import Names

CONNECTIONS_PER_ORIGIN = 100  # a bulkhead: one slow vendor cannot take them all
MAX_WAITING = 2_000
KEEP_IDLE_S = 60.0
LOOK_AFTER_IDLE_S = 0.25


@dataclass(frozen=True, slots=True)
class Origin:
    """Where connections go. Vendors that share an address have connections of their own, so that each has its bound.

    So has each organization at an address that comes from its credentials; `owner` is None at the catalog's.
    """

    is_tls: bool
    host: str
    port: int
    vendor: str = ""
    owner: Hashable = None


@cache
def verifying_tls() -> ssl.SSLContext:
    """The one context of the process: making it costs tens of milliseconds."""
    return ssl.create_default_context()


class Connections:
    """Open connections to one origin. One event loop.

    `_open` counts every connection from the attempt to open it until it is closed. Whoever finds it at the limit waits
    in line, and is handed either a connection or the place of one that closed: nobody who comes later gets in between.
    """

    def __init__(
        self, origin: Origin, *, allow_private: bool, limits: Limits, tls: Callable[[], ssl.SSLContext], names: Names
    ) -> None:
        self._origin = origin
        self._names = names
        self._allow_private = allow_private
        self._limits = limits
        self._tls = tls
        self._loop = asyncio.get_running_loop()
        self._idle: list[Connection] = []
        self._busy: set[Connection] = set()
        self._open = 0
        self._is_closed = False
        self._waiting: deque[asyncio.Future[Connection | None]] = deque()

    @property
    def is_unused(self) -> bool:
        """Nothing is open and nobody waits."""
        return self._open == 0 and not self._waiting

    def take_idle(self) -> Connection | None:
        """The connection that was used last and is certain to be open still, if there is one."""
        now = self._loop.time()
        while self._idle:
            connection = self._idle.pop()
            idle_s = now - connection.idle_since_s
            is_fresh = idle_s < min(KEEP_IDLE_S, connection.idle_at_most_s)
            # A request on a connection that the vendor has just closed is lost, and must not be sent again: it may
            # have run. So one that has rested is looked at first.
            if connection.is_usable and is_fresh and (idle_s < LOOK_AFTER_IDLE_S or not connection.has_unread()):
                self._busy.add(connection)
                return connection
            connection.abort()
        return None

    async def take(self, deadline: float) -> Connection:
        """A connection for one request, idle or new.

        Raises: VendorProblem.
        """
        while True:
            connection = self.take_idle()
            if connection is not None:
                return connection
            if self._open < CONNECTIONS_PER_ORIGIN:
                self._open += 1
                return await self._connect(deadline)
            connection = await self._wait(deadline)
            if connection is None:
                return await self._connect(deadline)
            if connection.is_usable:
                return connection

    def give_back(self, connection: Connection, *, may_drain: bool) -> None:
        """The exchange is over: kept for the next one if nothing is left of it, closed otherwise."""
        if connection.finish(may_drain=may_drain):
            waiter = self._next_waiter()
            if waiter is not None:
                waiter.set_result(connection)
                return
            self._busy.discard(connection)
            connection.idle_since_s = self._loop.time()
            self._idle.append(connection)

    def drained(self, connection: Connection) -> None:
        """See http1.Owner."""
        self.give_back(connection, may_drain=False)

    def lost(self, connection: Connection) -> None:
        """See http1.Owner."""
        if connection in self._busy:
            self._busy.discard(connection)
        elif connection in self._idle:
            self._idle.remove(connection)
        self._free_place()

    def close_idle(self, *, longer_than_s: float = KEEP_IDLE_S) -> None:
        """Close what nobody used for so long."""
        edge = self._loop.time() - longer_than_s
        for connection in [each for each in self._idle if each.idle_since_s <= edge]:
            self._idle.remove(connection)
            connection.abort()

    def abort(self) -> None:
        """Close everything, whatever is under way; nothing is opened any more."""
        self._is_closed = True
        for connection in [*self._idle, *self._busy]:
            connection.abort()
        self._idle.clear()

    def _free_place(self) -> None:
        """One connection less: the next in line may open one."""
        waiter = self._next_waiter()
        if waiter is None:
            self._open -= 1
        else:
            waiter.set_result(None)

    def _next_waiter(self) -> asyncio.Future[Connection | None] | None:
        for position, waiter in enumerate(self._waiting):
            if not waiter.done():  # one that was cancelled takes itself out of the line
                del self._waiting[position]
                return waiter
        return None

    async def _wait(self, deadline: float) -> Connection | None:
        """A connection, or None for the right to open one."""
        if len(self._waiting) >= MAX_WAITING:
            raise errors.unavailable("Too many calls wait for the vendor.")
        waiter: asyncio.Future[Connection | None] = self._loop.create_future()
        self._waiting.append(waiter)
        try:
            async with asyncio.timeout_at(deadline):
                return await waiter
        except BaseException as fault:
            if waiter.done() and not waiter.cancelled():  # handed over at the moment we gave up
                self._pass_on(waiter.result())
            else:
                self._waiting.remove(waiter)
            if isinstance(fault, TimeoutError):
                raise errors.timeout() from fault
            raise

    def _pass_on(self, handed: Connection | None) -> None:
        if handed is None:
            self._free_place()
        elif handed.is_usable:
            self.give_back(handed, may_drain=False)

    async def _connect(self, deadline: float) -> Connection:
        """A new connection, for which a place is already counted."""
        longest = self._loop.time() + self._limits.connect_s
        ends_at = min(deadline, longest)
        try:
            if self._is_closed:
                raise ConnectionAbortedError("shutting down")
            async with asyncio.timeout_at(ends_at):
                connection = await self._reach(await self._addresses(), ends_at)
        except BaseException as fault:
            self._free_place()
            if isinstance(fault, AddressRefused):
                raise errors.AddressNotAllowed from fault
            if isinstance(fault, TimeoutError):
                # A call that came with little time left says nothing about the vendor, which all organizations share.
                raise errors.timeout(Sign.UNREACHED if deadline >= longest else Sign.NOTHING) from fault
            if isinstance(fault, socket.gaierror | UnicodeError):
                raise errors.unavailable("The vendor's host name is unknown.", Sign.UNREACHED) from fault
            if isinstance(fault, OSError):  # ssl.SSLError is one
                raise errors.unavailable(sign=Sign.UNREACHED) from fault
            raise
        connection.owner = self
        self._busy.add(connection)
        return connection

    async def _addresses(self) -> list[str]:
        """Every address of the host, all of them judged: one bad answer refuses the name."""
        host = self._origin.host
        if _is_address(host):
            found = [host]
        else:
            found = await self._names.addresses(host, self._origin.port, self._origin.owner)
        if not found or not all(may_connect(address, allow_private=self._allow_private) for address in found):
            raise AddressRefused
        return found

    async def _reach(self, addresses: Sequence[str], ends_at: float) -> Connection:
        """The first address that answers. Each gets its share of the time, the last one all that is left."""
        for position, address in enumerate(addresses):
            left_s = ends_at - self._loop.time()
            is_last = position == len(addresses) - 1
            try:
                async with asyncio.timeout(None if is_last else left_s / (len(addresses) - position)):
                    return await self._open_one(address)
            except (OSError, TimeoutError):
                if is_last:
                    raise
        raise OSError("no address")

    async def _open_one(self, address: str) -> Connection:
        origin = self._origin
        connection = Connection(self._loop, self._limits)
        try:
            await self._loop.create_connection(
                lambda: connection,
                address,
                origin.port,
                ssl=self._tls() if origin.is_tls else None,
                server_hostname=origin.host if origin.is_tls else None,
            )
        except BaseException:
            connection.abort()
            raise
        if not connection.is_usable:
            raise ConnectionResetError("closed at once")
        return connection


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
