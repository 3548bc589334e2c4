"""psycopg connections with a timeout for each wait.   docs/decisions/0015"""

from __future__ import annotations

from collections.abc import Generator
from functools import cache
from typing import Any, TypeVar

import psycopg
from django.db.backends.postgresql.base import DatabaseWrapper
from psycopg import errors

# statement_timeout ends a statement only while the server lives and is reached. When its packets get lost, TCP may
# trust the connection for a quarter of an hour, so this side gives up by itself.
POLL_S = 0.1  # between psycopg's checks for interrupts while it waits
CHECK_S = 2.0  # of the pool's check of a connection, which costs a server nothing
RV = TypeVar("RV")


class ResponseTimeout(psycopg.OperationalError):
    """The server sent nothing in time. The connection is closed; the statement may have run."""


class BoundedConnection(psycopg.Connection[Any]):
    """Each wait for the server ends after `response_timeout_s` seconds; None: after TCP's timeout."""

    response_timeout_s: float | None = None

    def wait(self, gen: Generator[Any, Any, RV], interval: float = POLL_S, timeout: float | None = None) -> RV:
        """Raises: ResponseTimeout."""
        if timeout is not None or self.response_timeout_s is None:
            return super().wait(gen, interval, timeout)
        try:
            return super().wait(gen, interval, self.response_timeout_s)
        except errors._WaitTimeout:
            self.close()
            raise ResponseTimeout("the database did not answer in time") from None

    def execute(self, *args: Any, **kwargs: Any) -> psycopg.Cursor[Any]:
        # Only the pool's check of a connection calls this: the ORM uses cursors.
        usual = self.response_timeout_s
        self.response_timeout_s = CHECK_S if usual is None else min(CHECK_S, usual)
        try:
            return super().execute(*args, **kwargs)
        finally:
            self.response_timeout_s = usual


@cache
def bounded(response_timeout_s: float) -> type[BoundedConnection]:
    return type("BoundedConnection", (BoundedConnection,), {"response_timeout_s": response_timeout_s})


class BoundedWrapper(DatabaseWrapper):
    response_timeout_s = 5.0

    def get_new_connection(self, conn_params: dict[str, Any]) -> psycopg.Connection[Any]:
        return bounded(self.response_timeout_s).connect(**conn_params)


class ReservedWrapper(DatabaseWrapper):
    # A class attribute of Django's: with one of its own, this class shares no pool with pages.
    _connection_pools: dict[str, Any] = {}
