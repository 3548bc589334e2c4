"""Connections to PostgreSQL that wait for an answer only so long. Loaded with PostgreSQL only: psycopg takes 9 MB.

The server's statement_timeout ends a statement while the server lives and is reached. A server whose packets get lost
ends nothing, and TCP may go on trusting a connection for a quarter of an hour. Here the thread that waits gives up.
"""

from __future__ import annotations

from collections.abc import Generator
from functools import cache
from typing import Any, TypeVar

import psycopg
from django.db.backends.postgresql.base import DatabaseWrapper
from psycopg import errors

POLL_S = 0.1  # how often psycopg looks for interrupts while it waits
CHECK_S = 2.0  # for the pool's question whether a connection lives, which costs a server nothing
RV = TypeVar("RV")


class AnswerTimeout(psycopg.OperationalError):
    """The server was silent for too long. The connection is closed; the statement may have run."""


class BoundedConnection(psycopg.Connection[Any]):
    """A connection whose every wait for the server ends after `answer_s` seconds; None waits as long as TCP does."""

    answer_s: float | None = None

    def wait(self, gen: Generator[Any, Any, RV], interval: float = POLL_S, timeout: float | None = None) -> RV:
        """Run one exchange with the server. Raises: AnswerTimeout, besides what the exchange raises."""
        if timeout is not None or self.answer_s is None:
            return super().wait(gen, interval, timeout)
        try:
            return super().wait(gen, interval, self.answer_s)
        except errors._WaitTimeout:
            self.close()
            raise AnswerTimeout("the database did not answer in time") from None

    def execute(self, *args: Any, **kwargs: Any) -> psycopg.Cursor[Any]:
        """Only the pool's check of a connection comes this way: the ORM has cursors of its own."""
        usual = self.answer_s
        self.answer_s = CHECK_S if usual is None else min(CHECK_S, usual)
        try:
            return super().execute(*args, **kwargs)
        finally:
            self.answer_s = usual


@cache
def bounded(answer_s: float) -> type[BoundedConnection]:
    """The class of connections that wait `answer_s` seconds, for a pool's `connection_class`."""
    return type("BoundedConnection", (BoundedConnection,), {"answer_s": answer_s})


class BoundedWrapper(DatabaseWrapper):
    """A database without a pool whose connection waits `answer_s` seconds."""

    answer_s = 5.0

    def get_new_connection(self, conn_params: dict[str, Any]) -> psycopg.Connection[Any]:
        """A connection of its own."""
        return bounded(self.answer_s).connect(**conn_params)


class ReservedWrapper(DatabaseWrapper):
    """A database with the pool of this class: pages, which use the other one, take none of its connections."""

    _connection_pools: dict[str, Any] = {}
