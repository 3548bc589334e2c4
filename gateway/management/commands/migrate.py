"""`manage.py migrate` with unlimited statement time and a short lock timeout."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management.commands import migrate
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from gateway.lib.session_timeouts import HAS_POOLER

# Seconds. ALTER TABLE waits for running readers, and new readers queue behind it: a long wait would stop all calls.
LOCK_TIMEOUT_S = 5


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> str | None:
        """Raises: OperationalError when a lock was not free in time; running the command again is safe."""
        with without_statement_timeout(connections[options["database"]]):
            return super().handle(*args, **options)


@contextmanager
def without_statement_timeout(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Inside the block statements have no timeout, and locks wait LOCK_TIMEOUT_S."""
    if connection.vendor != "postgresql" or connection.settings_dict.get(HAS_POOLER):
        # Behind a pooler other clients share the session, so its timeouts stay.
        yield
        return
    names = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
    values = ("0", f"{LOCK_TIMEOUT_S}s", "0")
    connection.ensure_connection()
    session = connection.connection
    response_timeout_s, session.response_timeout_s = getattr(session, "response_timeout_s", None), None
    try:
        with connection.cursor() as cursor:
            for name, value in zip(names, values, strict=True):
                cursor.execute(f"SET {name} = '{value}'")
        yield
    finally:
        session.response_timeout_s = response_timeout_s
        if connection.connection is session and not session.closed and not connection.in_atomic_block:
            with connection.cursor() as cursor:
                for name in names:
                    cursor.execute(f"RESET {name}")
