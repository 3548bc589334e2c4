"""A pipelined connection to Redis: commands of many callers, answered in their order.

connecting --AUTH, SELECT--> open --lost, silent or unreadable--> closed --next command--> connecting
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import cast

import redis.asyncio
from redis.asyncio.connection import AbstractConnection, Connection, SSLConnection, UnixDomainSocketConnection

from gateway.coordination import resp
from gateway.coordination.busy_aware_timeout import LATE_S, BusyAwareTimeout
from gateway.coordination.redis_faults import ends_connection
from gateway.coordination.resp import BadReply, ErrorReply

MAX_REPLY_BYTES = 1024 * 1024  # of one reply that is not complete; more closes the connection


class _Wire(asyncio.Protocol):
    def __init__(self, loop: asyncio.AbstractEventLoop, patience_s: float) -> None:
        self.is_open = False
        self._loop = loop
        self._patience_s = patience_s
        self._transport: asyncio.Transport | None = None
        self._waiting: deque[asyncio.Future[object]] = deque()
        self._leaving: list[bytes] = []
        self._left_together = 0  # number of commands in the last packet
        self._reader = resp.reader()
        self._incomplete_bytes = 0  # received since the last whole reply
        self._silent_since_s = 0.0
        self._is_last_look = False
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_busy(self) -> bool:
        return bool(self._waiting)

    def ask(self, command: bytes) -> asyncio.Future[object]:
        """A future of the reply; an ErrorReply is a value. Fails with TimeoutError or ConnectionError."""
        if self._transport is None or not self.is_open:
            raise ConnectionResetError("closed")
        future: asyncio.Future[object] = self._loop.create_future()
        is_idle = not self._waiting
        if is_idle:
            self._silent_since_s = self._loop.time()
            if self._timer is None:
                self._arm(self._silent_since_s + self._patience_s)
        self._waiting.append(future)
        if is_idle and self._left_together == 1:  # no other command is likely in this pass
            self._transport.write(command)
            return future
        if not self._leaving:
            self._loop.call_soon(self._leave)
        self._leaving.append(command)
        return future

    def _leave(self) -> None:
        # Each write is a system call and wakes Redis: one write for all commands of this pass of the loop.
        leaving, self._leaving = self._leaving, []
        self._left_together = len(leaving)
        if len(self._waiting) == len(leaving):  # Redis got nothing before now
            self._silent_since_s = self._loop.time()
        if self._transport is not None and self.is_open:
            self._transport.write(leaving[0] if len(leaving) == 1 else b"".join(leaving))

    def close(self, fault: Exception | None = None) -> None:
        """Close at once and fail all waiting commands with `fault`."""
        self.is_open = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._transport is not None:
            self._transport.abort()
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_exception(fault or ConnectionAbortedError("closed"))

    # --- asyncio.Protocol -------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.is_open = True

    def data_received(self, data: bytes) -> None:
        self._silent_since_s = self._loop.time()
        self._is_last_look = False
        reader, waiting = self._reader, self._waiting
        reader.feed(data)
        self._incomplete_bytes += len(data)
        try:
            while waiting and (reply := reader.gets()) is not False:
                self._incomplete_bytes = 0
                future = waiting.popleft()
                if not future.done():  # a cancelled caller's reply still comes, and is dropped
                    future.set_result(reply)
        except BadReply:
            self.close(ConnectionResetError("not a reply"))
            return
        if self._incomplete_bytes > MAX_REPLY_BYTES or (not waiting and reader.has_data()):
            self.close(ConnectionResetError("more than a reply"))

    def eof_received(self) -> None:
        self.is_open = False

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self.close(ConnectionResetError("lost"))

    # --- time -------------------------------------------------------------------------------------------------------

    def _arm(self, due: float) -> None:
        self._timer = self._loop.call_at(due, self._look, due)

    def _look(self, due: float) -> None:
        """Close the connection if Redis sent nothing for `patience_s` while commands waited."""
        # One timer for all commands.
        self._timer = None
        if not self._waiting:
            self._is_last_look = False
            return
        now = self._loop.time()
        if now - self._silent_since_s < self._patience_s:
            self._arm(self._silent_since_s + self._patience_s)
        elif now - due > LATE_S and not self._is_last_look:  # the loop was busy: the reply may be in the socket
            self._is_last_look = True
            self._arm(now + LATE_S)
        else:
            self.close(TimeoutError("silent"))


class PipelinedRedis:
    """The connection of one event loop, opened again at the next command after it was lost."""

    def __init__(self, url: str, *, patience_s: float) -> None:
        self._address = _address(url)
        self._patience_s = patience_s
        self._wire: _Wire | None = None
        self._opening: asyncio.Task[_Wire] | None = None

    async def ask(self, command: bytes) -> object:
        """Send a command and return the reply. Raises: ErrorReply; OSError (so TimeoutError, ConnectionError)."""
        wire = self._wire
        if wire is None or not wire.is_open:
            wire = await self._open()
        try:
            reply = await wire.ask(command)
        except ConnectionError:  # sent once more: a window may count the command twice
            wire = await self._open()
            reply = await wire.ask(command)
        if isinstance(reply, ErrorReply):
            if ends_connection(reply):
                wire.close()
            raise reply
        return reply

    def close(self) -> None:
        if self._opening is not None:
            self._opening.cancel()
        if self._wire is not None:
            self._wire.close()

    def leave(self) -> None:
        """Close the connection if no command waits on it; the next command opens another."""
        if self._wire is not None and not self._wire.is_busy:
            self._wire.close()

    async def _open(self) -> _Wire:
        """Return the open connection. Concurrent callers share one attempt, and its failure."""
        if self._wire is not None and self._wire.is_open:
            return self._wire
        if self._opening is None or self._opening.done():
            self._opening = asyncio.ensure_future(self._attempt())
            self._opening.add_done_callback(_retrieved)
        return await asyncio.shield(self._opening)

    async def _attempt(self) -> _Wire:
        async with BusyAwareTimeout(self._patience_s):
            self._wire = await self._connect()
        return self._wire

    async def _connect(self) -> _Wire:
        loop, address = asyncio.get_running_loop(), self._address
        wire = _Wire(loop, self._patience_s)
        if isinstance(address, UnixDomainSocketConnection):
            await loop.create_unix_connection(lambda: wire, address.path)
        elif isinstance(address, Connection):
            tls = address.ssl_context.get() if isinstance(address, SSLConnection) else None
            await loop.create_connection(lambda: wire, address.host, address.port, ssl=tls)
        try:
            greetings = []
            if address.password:
                who = (address.username,) if address.username else ()
                greetings.append(wire.ask(resp.command("AUTH", *who, address.password)))
            if address.db:
                greetings.append(wire.ask(resp.command("SELECT", address.db)))
            for reply in await asyncio.gather(*greetings):
                if isinstance(reply, ErrorReply):
                    raise reply
        except BaseException:
            wire.close()
            raise
        return wire


def _retrieved(attempt: asyncio.Task[_Wire]) -> None:
    # Without this, asyncio logs an attempt that failed after all its callers had left.
    if not attempt.cancelled():
        attempt.exception()


def _address(url: str) -> AbstractConnection:
    # redis-py parses the URL: host, password, database, certificates.
    made: AbstractConnection = redis.asyncio.ConnectionPool.from_url(url).make_connection()  # type: ignore[no-untyped-call]
    return made
