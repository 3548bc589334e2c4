"""Connection pool of one vendor address. Connections go to addresses checked by the outbound rules, not to names."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import islice

from gateway.lib.outbound import AddressRefused, check_addresses
from proxy.timing import Timing
from proxy.vendors import errors
from proxy.vendors.dns import Resolver
from proxy.vendors.errors import Evidence
from proxy.vendors.fair_semaphore import UNSHARED, FairSemaphore, QueueFull
from proxy.vendors.http1 import Connection, Limits

MAX_QUEUED = 2_000  # calls in line for a connection, over all organizations
# An organization gets another connection while it uses fewer than are free, so one alone gets half of all. Four
# organizations with 30 slow calls each use 90 of 100 and leave ten.
FREE_RATIO = 1.0
# A round number. Calls of an agent at work follow each other within seconds, and a shorter time that the vendor
# announces counts instead.
KEEP_IDLE_S = 60.0
CHECK_AFTER_IDLE_S = 0.25  # from then on, the socket is checked before reuse


@dataclass(frozen=True, slots=True)
class Origin:
    """Key of a connection pool. Vendors at one address have a pool each, so that each has its own maximum."""

    is_tls: bool
    host: str
    port: int
    vendor: str = ""
    owner: Hashable = None  # the organization whose credential names the address; None for the catalog's


class Connections:
    """One event loop. Organizations share `max_open` places (`fair_semaphore`), one for each connection in use."""

    def __init__(
        self,
        origin: Origin,
        *,
        max_open: int,
        allow_private: bool,
        limits: Limits,
        tls: Callable[[], ssl.SSLContext],
        resolver: Resolver,
    ) -> None:
        self.origin = origin
        self._resolver = resolver
        self._allow_private = allow_private
        self._limits = limits
        self._tls = tls
        self._loop = asyncio.get_running_loop()
        self._max_open = max_open
        free_ratio = FREE_RATIO if origin.owner is None else UNSHARED
        self._permits = FairSemaphore(max_open, free_ratio=free_ratio, max_queued=MAX_QUEUED)
        self._opening = 0
        self._idle: list[Connection] = []
        self._busy: set[Connection] = set()
        # Idle and draining connections hold no place: new connections displace the draining ones.
        self._draining: dict[Connection, None] = {}  # drain the rest of an event stream, oldest first
        self._is_closed = False

    @property
    def is_unused(self) -> bool:
        return not (self._idle or self._busy or self._draining) and self._permits.is_unused

    @property
    def counts(self) -> tuple[int, int]:
        """Connections that requests use or drain, and idle ones."""
        return len(self._busy) + len(self._draining), len(self._idle)

    def acquire_idle(self, organization: Hashable) -> Connection | None:
        """An idle connection and a place for `organization`; None if either is missing."""
        if not self._idle or not self._permits.try_acquire(organization):
            return None
        connection = self._newest_idle()
        if connection is None:
            self._permits.release(organization)
        return connection

    async def acquire(
        self, organization: Hashable, deadline: float, timing: Timing | None = None
    ) -> tuple[Connection, bool]:
        """A connection, and whether the call waited in line; `timing` counts that wait apart. Raises: VendorProblem."""
        has_waited = not self._permits.try_acquire(organization)
        if has_waited:
            with (timing or Timing()).queue_wait():
                await self._wait(organization, deadline)
        try:
            return self._newest_idle() or await self._connect(deadline), has_waited
        except BaseException:
            self._permits.release(organization)
            raise

    def release(self, connection: Connection, organization: Hashable, *, may_drain: bool) -> None:
        """Keep the connection for reuse if the answer was read completely, else drain or close it."""
        is_free = connection.finish(may_drain=may_drain)
        if connection in self._busy:  # else it is closed already
            self._busy.discard(connection)
            if is_free:
                self._add_idle(connection)
            else:
                self._draining[connection] = None
        self._permits.release(organization)

    def on_drained(self, connection: Connection) -> None:
        if connection.finish(may_drain=False) and connection in self._draining:
            del self._draining[connection]
            self._add_idle(connection)

    def on_lost(self, connection: Connection) -> None:
        self._busy.discard(connection)
        self._draining.pop(connection, None)
        if connection in self._idle:
            self._idle.remove(connection)

    def close_idle(self, *, longer_than_s: float = KEEP_IDLE_S) -> None:
        edge = self._loop.time() - longer_than_s
        for connection in [each for each in self._idle if each.idle_since_s <= edge]:
            self._idle.remove(connection)
            connection.abort()

    def abort(self) -> None:
        self._is_closed = True
        for connection in [*self._idle, *self._busy, *self._draining]:
            connection.abort()
        self._idle.clear()

    def _add_idle(self, connection: Connection) -> None:
        connection.idle_since_s = self._loop.time()
        self._idle.append(connection)

    def _newest_idle(self) -> Connection | None:
        """The connection used last that is still open; None if there is none."""
        now = self._loop.time()
        while self._idle:
            connection = self._idle.pop()
            idle_s = now - connection.idle_since_s
            is_fresh = idle_s < min(KEEP_IDLE_S, connection.idle_at_most_s)
            # A request on a connection that the vendor has just closed is lost and cannot be retried: it may have run.
            # So the socket of a rested connection is checked first.
            if connection.is_usable and is_fresh and (idle_s < CHECK_AFTER_IDLE_S or not connection.has_unread()):
                self._busy.add(connection)
                return connection
            connection.abort()
        return None

    async def _wait(self, organization: Hashable, deadline: float) -> None:
        try:
            await self._permits.acquire(organization, deadline)
        except QueueFull:
            raise errors.unavailable("Too many calls are waiting for the vendor.") from None
        except TimeoutError as fault:
            raise errors.timeout() from fault

    def _close_draining(self) -> None:
        # Draining streams close, oldest first: their answers have been read.
        surplus = len(self._busy) + self._opening + len(self._draining) + 1 - self._max_open
        for connection in list(islice(self._draining, max(0, surplus))):
            del self._draining[connection]
            connection.abort()

    async def _connect(self, deadline: float) -> Connection:
        self._close_draining()  # the caller holds a place already
        self._opening += 1
        try:
            connection = await self._new(deadline)
        finally:
            self._opening -= 1
        connection.owner = self
        self._busy.add(connection)
        return connection

    async def _new(self, deadline: float) -> Connection:
        longest = self._loop.time() + self._limits.connect_s
        ends_at = min(deadline, longest)
        try:
            if self._is_closed:
                raise ConnectionAbortedError("shutting down")
            async with asyncio.timeout_at(ends_at):
                return await self._connect_any(await self._addresses(), ends_at)
        except AddressRefused as fault:
            raise errors.AddressNotAllowed from fault
        except TimeoutError as fault:
            # With less time left than the connect timeout, a timeout shows nothing about the vendor.
            raise errors.timeout(Evidence.CONNECT_FAILED if deadline >= longest else Evidence.NONE) from fault
        except (socket.gaierror, UnicodeError) as fault:
            raise errors.unknown_host() from fault
        except OSError as fault:  # ssl.SSLError is one
            raise errors.unavailable(evidence=Evidence.CONNECT_FAILED) from fault

    async def _addresses(self) -> list[str]:
        host = self.origin.host
        if _is_address(host):
            found = [host]
        else:
            found = await self._resolver.resolve(host, self.origin.port, self.origin.owner)
        check_addresses(found, allow_private=self._allow_private)
        return found

    async def _connect_any(self, addresses: Sequence[str], ends_at: float) -> Connection:
        for position, address in enumerate(addresses):
            left_s = ends_at - self._loop.time()
            is_last = position == len(addresses) - 1
            try:
                # Equal shares of the time that is left; the last address has all of it.
                async with asyncio.timeout(None if is_last else left_s / (len(addresses) - position)):
                    return await self._open_one(address)
            except (OSError, TimeoutError):
                if is_last:
                    raise
        raise OSError("no address")

    async def _open_one(self, address: str) -> Connection:
        origin = self.origin
        # The address was checked; SNI and the certificate check still use the name.
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
