"""Reads from PostgreSQL on an event loop, without a change of threads.   docs/decisions/0050

closed --first read: connect, prepare (in a thread)--> idle --read--> asking --answer--> idle
   ^------- lost, or no answer in time: waiting reads fail or are asked again -------|

One connection, one statement at a time, in the order of the calls. Statements only read, so one whose connection was
lost while idle is sent again.
"""

from __future__ import annotations

import asyncio
import copy
import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gateway.lib.json_statement import JsonStatement
from gateway.lib.session_timeouts import HAS_POOLER, SessionTimeouts, with_timeouts

if TYPE_CHECKING:
    import psycopg
    from psycopg import pq

_ENDS_SESSION = "57P"  # SQLSTATEs of a server that shuts down or ends this session


class LostConnection(Exception):
    """The connection broke before an answer came."""


@dataclass(slots=True)
class _Read:
    statement: JsonStatement
    value: bytes
    future: asyncio.Future[bytes | None]


class LoopReader:
    """Belongs to one event loop. `open_connection` blocks, and runs in a thread."""

    def __init__(self, open_connection: Callable[[], ReadingConnection], *, answer_s: float) -> None:
        """`answer_s`: a server that is silent for longer is given up."""
        self._open_connection = open_connection
        self._answer_s = answer_s
        self._connection: ReadingConnection | None = None
        self._opening: asyncio.Task[None] | None = None
        self._socket = -1
        self._waiting: deque[_Read] = deque()
        self._asked: _Read | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def read(self, statement: JsonStatement, value: str) -> bytes | None:
        """The JSON text; None without a row. Raises: LostConnection; psycopg.Error; TimeoutError."""
        encoded = value.encode()
        for is_last in (False, True):
            is_new = await self._connect()
            if self._connection is None:  # lost again before this read was sent
                continue
            read = _Read(statement, encoded, asyncio.get_running_loop().create_future())
            self._waiting.append(read)
            self._ask_next()
            try:
                return await read.future
            except LostConnection:
                if is_new or is_last:
                    raise
        raise LostConnection("lost twice")

    async def aclose(self) -> None:
        if self._opening is not None:
            await asyncio.wait({self._opening})
        self._end(LostConnection("closed"))

    async def _connect(self) -> bool:
        """Whether a connection had to be opened. Callers share one attempt, and its failure."""
        if self._connection is not None:
            return False
        if self._opening is None or self._opening.done():
            self._opening = asyncio.ensure_future(self._open())
            self._opening.add_done_callback(_retrieve_exception)
        await asyncio.shield(self._opening)
        return True

    async def _open(self) -> None:
        loop = asyncio.get_running_loop()
        opened = await loop.run_in_executor(None, self._open_connection)
        # The driver closes its socket when the connection breaks, and the number may then belong to another one.
        try:
            self._socket = os.dup(opened.fileno())
        except OSError:
            opened.close()
            raise
        self._connection = opened
        loop.add_reader(self._socket, self._on_readable)

    def _ask_next(self) -> None:
        connection = self._connection
        if connection is None or self._asked is not None:
            return
        while self._waiting:
            read = self._waiting.popleft()
            if read.future.done():  # its caller has left
                continue
            self._asked = read
            try:
                connection.ask(read.statement, read.value)
            except Exception as fault:  # any driver error
                self._end(LostConnection(type(fault).__name__))
                return
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._answer_s, self._on_silence)
            return

    def _on_readable(self) -> None:
        connection = self._connection
        if connection is None:
            return
        try:
            answer = connection.poll()
        except Exception as fault:  # any driver error, and the end of an idle connection
            self._end(LostConnection(type(fault).__name__))
            return
        if answer is None or self._asked is None:
            return
        if _ends_session(answer):
            self._end(LostConnection("ended by the server"))
            return
        read, self._asked = self._asked, None
        self._cancel_timer()
        if not read.future.done():
            if isinstance(answer, Exception):
                read.future.set_exception(answer)
            else:
                read.future.set_result(answer[0])
        self._ask_next()

    def _on_silence(self) -> None:
        # A server that answers one caller late would answer those behind it later still.
        self._end(TimeoutError("the database did not answer in time"))

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end(self, fault: Exception) -> None:
        self._cancel_timer()
        connection, self._connection = self._connection, None
        if connection is not None:
            loop = asyncio.get_running_loop()
            loop.remove_reader(self._socket)
            os.close(self._socket)
            connection.close()
        asked, self._asked = self._asked, None
        if asked is not None and not asked.future.done():
            asked.future.set_exception(fault)
        waiting, self._waiting = self._waiting, deque()
        for read in waiting:  # never sent: another connection may answer them
            if not read.future.done():
                read.future.set_exception(LostConnection("not sent"))


class ReadingConnection:
    """A connection of libpq that does not block, with `statements` prepared where no pooler forbids it."""

    def __init__(self, connection: psycopg.Connection[Any], statements: Sequence[JsonStatement], *, prepares: bool):
        """Raises: psycopg.Error."""
        self._connection = connection
        self._pgconn: pq.abc.PGconn = connection.pgconn
        self._prepares = prepares
        self._asked: tuple[JsonStatement, bytes] | None = None
        self._result: pq.abc.PGresult | None = None
        try:
            if prepares:
                self._prepare(statements)
            self._pgconn.nonblocking = 1
        except BaseException:
            connection.close()
            raise

    def fileno(self) -> int:
        return int(self._pgconn.socket)

    def ask(self, statement: JsonStatement, value: bytes) -> None:
        self._asked = (statement, value)
        # A few hundred bytes: the socket of an idle connection takes them at once.
        if self._prepares:
            self._pgconn.send_query_prepared(statement.name, [value])
        else:
            self._pgconn.send_query_params(statement.postgresql, [value])
        self._pgconn.flush()

    def poll(self) -> tuple[bytes | None] | Exception | None:
        """(the text or None,) or the server's error; None while it is not complete. Raises: psycopg.Error."""
        from psycopg import errors

        self._pgconn.consume_input()
        while not self._pgconn.is_busy():
            result = self._pgconn.get_result()
            if result is not None:
                self._result = result
                continue
            complete, self._result = self._result, None
            answer = None if complete is None else _answer(complete)
            if not isinstance(answer, errors.InvalidSqlStatementName) or self._asked is None:
                return answer
            # A pooler gave this connection another session: nothing is prepared on it any more.
            self._prepares = False
            self.ask(*self._asked)
            return None
        return None

    def close(self) -> None:
        self._connection.close()

    def _prepare(self, statements: Sequence[JsonStatement]) -> None:
        from psycopg import errors, generators

        for statement in statements:
            self._pgconn.send_prepare(statement.name, statement.postgresql)
            for result in self._connection.wait(generators.execute(self._pgconn)):
                fault = _answer(result)
                if isinstance(fault, errors.DuplicatePreparedStatement):  # sessions behind a pooler are shared
                    self._prepares = False
                    return
                if isinstance(fault, Exception):
                    raise fault


def open_reading_connection(
    database: Mapping[str, Any], timeouts: SessionTimeouts, statements: Sequence[JsonStatement]
) -> ReadingConnection:
    """`database` is an entry of DATABASES for PostgreSQL. Raises: django.db.Error; psycopg.Error."""
    from gateway.lib.bounded_connection import BoundedWrapper

    config = with_timeouts(copy.deepcopy(dict(database)), timeouts)
    config["OPTIONS"].pop("pool", None)
    config["OPTIONS"]["application_name"] = "gateway-callers"
    wrapper = BoundedWrapper(config, "default")
    wrapper.ensure_connection()
    return ReadingConnection(wrapper.connection, statements, prepares=not config.get(HAS_POOLER))


def _answer(result: pq.abc.PGresult) -> tuple[bytes | None] | Exception:
    from psycopg import errors, pq

    if result.status == pq.ExecStatus.TUPLES_OK:
        return (result.get_value(0, 0) if result.ntuples else None,)
    if result.status == pq.ExecStatus.COMMAND_OK:
        return (None,)
    return errors.error_from_result(result)


def _ends_session(fault: object) -> bool:
    return isinstance(fault, Exception) and (getattr(fault, "sqlstate", None) or "").startswith(_ENDS_SESSION)


def _retrieve_exception(attempt: asyncio.Task[None]) -> None:
    # Without this, asyncio logs an attempt that failed after all its callers had left.
    if not attempt.cancelled():
        attempt.exception()
