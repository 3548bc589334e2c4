"""`manage.py migrate`, which takes the time it needs but waits for no lock that callers queue behind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management.commands import migrate
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from gateway.lib.session_timeouts import HAS_POOLER

# A change of a table waits for all that read it, and later readers wait behind the change.
LOCK_TIMEOUT_S = 5


class Command(migrate.Command):
    """Django's command with timeouts of its own."""

    def handle(self, *args: Any, **options: Any) -> str | None:
        """Apply the migrations. Raises: OperationalError when a lock was not free in time; it may be run again."""
        with without_statement_timeout(connections[options["database"]]):
            return super().handle(*args, **options)


@contextmanager
def without_statement_timeout(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Inside the block a statement may take any time, and waits LOCK_TIMEOUT_S for a lock.

    Behind a pooler the session is shared with others, so the role's own timeouts stay.
    """
    if connection.vendor != "postgresql" or connection.settings_dict.get(HAS_POOLER):
        yield
        return
    names = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
    values = ("0", f"{LOCK_TIMEOUT_S}s", "0")
    connection.ensure_connection()
    session = connection.connection
    answer_s, session.answer_s = getattr(session, "answer_s", None), None
    try:
        with connection.cursor() as cursor:
            for name, value in zip(names, values, strict=True):
                cursor.execute(f"SET {name} = '{value}'")
        yield
    finally:
        session.answer_s = answer_s
        if connection.connection is session and not session.closed and not connection.in_atomic_block:
            with connection.cursor() as cursor:
                for name in names:
                    cursor.execute(f"RESET {name}")
