"""A pipelined connection to Redis: commands of many callers, answered in their order.

connecting --AUTH, SELECT--> open --lost, silent or unreadable--> closed --next command--> connecting
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, cast

import redis.asyncio
from redis.asyncio.connection import AbstractConnection, Connection, SSLConnection, UnixDomainSocketConnection

from gateway.coordination import resp
from gateway.coordination.busy_aware_timeout import LATE_S, BusyAwareTimeout
from gateway.coordination.redis_faults import ends_connection
from gateway.coordination.resp import BadReply, ErrorReply

MAX_REPLY_BYTES = 1024 * 1024  # of one reply that is not complete; more closes the connection


class PipelinedConnection(asyncio.Protocol):
    def __init__(self, loop: asyncio.AbstractEventLoop, timeout_s: float) -> None:
        self.is_open = False
        self._loop = loop
        self._timeout_s = timeout_s
        self._transport: asyncio.Transport | None = None
        self._pending: deque[asyncio.Future[object]] = deque()
        self._outgoing: list[bytes] = []
        self._last_batch_size = 0  # number of commands in the last packet
        self._reader = resp.reader()
        self._incomplete_bytes = 0  # received since the last whole reply
        self._silent_since_s = 0.0
        self._is_last_check = False
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_busy(self) -> bool:
        return bool(self._pending)

    def send(self, command: bytes) -> asyncio.Future[object]:
        """A future of the reply; an ErrorReply is a value. Fails with TimeoutError or ConnectionError."""
        if self._transport is None or not self.is_open:
            raise ConnectionResetError("closed")
        future: asyncio.Future[object] = self._loop.create_future()
        is_idle = not self._pending
        if is_idle:
            self._silent_since_s = self._loop.time()
            if self._timer is None:
                self._arm(self._silent_since_s + self._timeout_s)
        self._pending.append(future)
        if is_idle and self._last_batch_size == 1:  # no other command is likely in this pass
            self._transport.write(command)
            return future
        if not self._outgoing:
            self._loop.call_soon(self._flush)
        self._outgoing.append(command)
        return future

    def send_all(self, commands: Sequence[bytes]) -> list[asyncio.Future[object]]:
        """`send` for commands that leave in one packet."""
        self._last_batch_size = len(commands)
        return [self.send(command) for command in commands]

    def _flush(self) -> None:
        # Each write is a system call and wakes Redis: one write for all commands of this pass of the loop.
        outgoing, self._outgoing = self._outgoing, []
        self._last_batch_size = len(outgoing)
        if len(self._pending) == len(outgoing):  # Redis got nothing before now
            self._silent_since_s = self._loop.time()
        if self._transport is not None and self.is_open:
            self._transport.write(outgoing[0] if len(outgoing) == 1 else b"".join(outgoing))

    def close(self, fault: Exception | None = None) -> None:
        """Close at once and fail all waiting commands with `fault`."""
        self.is_open = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._transport is not None:
            self._transport.abort()
        while self._pending:
            future = self._pending.popleft()
            if not future.done():
                future.set_exception(fault or ConnectionAbortedError("closed"))

    # --- asyncio.Protocol -------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.is_open = True

    def data_received(self, data: bytes) -> None:
        self._silent_since_s = self._loop.time()
        self._is_last_check = False
        reader, pending = self._reader, self._pending
        reader.feed(data)
        self._incomplete_bytes += len(data)
        try:
            while pending and (reply := reader.gets()) is not False:
                self._incomplete_bytes = 0
                future = pending.popleft()
                if not future.done():  # a cancelled caller's reply still comes, and is dropped
                    future.set_result(reply)
        except BadReply:
            self.close(ConnectionResetError("not a reply"))
            return
        if self._incomplete_bytes > MAX_REPLY_BYTES or (not pending and reader.has_data()):
            self.close(ConnectionResetError("more than a reply"))

    def eof_received(self) -> None:
        self.is_open = False

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self.close(ConnectionResetError("lost"))

    # --- time -------------------------------------------------------------------------------------------------------

    def _arm(self, due: float) -> None:
        self._timer = self._loop.call_at(due, self._on_timer, due)

    def _on_timer(self, due: float) -> None:
        """Close the connection if Redis sent nothing for `timeout_s` while commands waited."""
        # One timer for all commands.
        self._timer = None
        if not self._pending:
            self._is_last_check = False
            return
        now = self._loop.time()
        if now - self._silent_since_s < self._timeout_s:
            self._arm(self._silent_since_s + self._timeout_s)
        elif now - due > LATE_S and not self._is_last_check:  # the loop was busy: the reply may be in the socket
            self._is_last_check = True
            self._arm(now + LATE_S)
        else:
            self.close(TimeoutError("silent"))


class PipelinedRedis:
    """The connection of one event loop, opened again at the next command after it was lost."""

    def __init__(self, url: str, *, timeout_s: float, on_open: Callable[[], None] = lambda: None) -> None:
        """`on_open`: called with each new connection, before its first command."""
        self._address = _address(url)
        self._on_open = on_open
        self._timeout_s = timeout_s
        self._connection: PipelinedConnection | None = None
        self._opening: asyncio.Task[PipelinedConnection] | None = None

    async def execute(self, command: bytes) -> object:
        """Send a command and return the reply. Raises: ErrorReply; OSError (so TimeoutError, ConnectionError)."""
        connection = self._connection
        if connection is None or not connection.is_open:
            connection = await self._open()
        try:
            reply = await connection.send(command)
        except ConnectionError:  # sent once more: a window may count the command twice
            connection = await self._open()
            reply = await connection.send(command)
        if isinstance(reply, ErrorReply):
            _close_if_useless(connection, reply)
            raise reply
        return reply

    async def execute_all(self, commands: Sequence[bytes]) -> list[object]:
        """`execute` for commands that leave in one packet. Each is executed, also beside one that fails."""
        if len(commands) == 1:
            return [await self.execute(commands[0])]
        connection = await self._open()
        try:
            replies = await _replies(connection.send_all(commands))
        except ConnectionError:  # sent once more, as above
            connection = await self._open()
            replies = await _replies(connection.send_all(commands))
        for reply in replies:
            if isinstance(reply, ErrorReply):
                _close_if_useless(connection, reply)
                raise reply
        return replies

    def close(self) -> None:
        if self._opening is not None:
            self._opening.cancel()
        if self._connection is not None:
            self._connection.close()

    def close_if_idle(self) -> None:
        """Close the connection if no command waits on it; the next command opens another."""
        if self._connection is not None and not self._connection.is_busy:
            self._connection.close()

    async def _open(self) -> PipelinedConnection:
        """Return the open connection. Concurrent callers share one attempt, and its failure."""
        if self._connection is not None and self._connection.is_open:
            return self._connection
        if self._opening is None or self._opening.done():
            self._opening = asyncio.ensure_future(self._attempt())
            self._opening.add_done_callback(_retrieve_exception)
        return await asyncio.shield(self._opening)

    async def _attempt(self) -> PipelinedConnection:
        async with BusyAwareTimeout(self._timeout_s):
            self._connection = await self._connect()
        return self._connection

    async def _connect(self) -> PipelinedConnection:
        loop, address = asyncio.get_running_loop(), self._address
        connection = PipelinedConnection(loop, self._timeout_s)
        if isinstance(address, UnixDomainSocketConnection):
            await loop.create_unix_connection(lambda: connection, address.path)
        elif isinstance(address, Connection):
            tls = address.ssl_context.get() if isinstance(address, SSLConnection) else None
            await loop.create_connection(lambda: connection, address.host, address.port, ssl=tls)
        try:
            handshake = []
            if address.password:
                credentials = (address.username,) if address.username else ()
                handshake.append(connection.send(resp.command("AUTH", *credentials, address.password)))
            if address.db:
                handshake.append(connection.send(resp.command("SELECT", address.db)))
            for reply in await asyncio.gather(*handshake):
                if isinstance(reply, ErrorReply):
                    raise reply
        except BaseException:
            connection.close()
            raise
        self._on_open()
        return connection


def _close_if_useless(connection: PipelinedConnection, reply: ErrorReply) -> None:
    if ends_connection(reply):
        connection.close()


async def _replies(futures: list[asyncio.Future[object]]) -> list[object]:
    for future in futures:
        future.add_done_callback(_retrieve_exception)
    await futures[-1]  # replies come in the order of their commands
    return [future.result() for future in futures]


def _retrieve_exception(attempt: asyncio.Future[Any]) -> None:
    # Without this, asyncio logs an attempt that failed after all its callers had left.
    if not attempt.cancelled():
        attempt.exception()


def _address(url: str) -> AbstractConnection:
    # redis-py parses the URL: host, password, database, certificates.
    made: AbstractConnection = redis.asyncio.ConnectionPool.from_url(url).make_connection()  # type: ignore[no-untyped-call]
    return made
