"""`manage.py migrate`, one at a time, with unlimited statement time and short waits for locks, which it repeats."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from gateway.lib.session_timeouts import HAS_POOLER
from gateway.management.migration_lock import only_one

# Seconds. ALTER TABLE waits for running readers, and new readers and writers queue behind it: calls have 4 s to wait.
LOCK_TIMEOUT_S = 2
LOCK_ATTEMPTS = 40
LOCK_PAUSE_S = 3.0  # in the mean, in which those that queued are served
LOCK_NOT_AVAILABLE = "55P03"


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> str | None:
        """Raises: CommandError when a lock was never free in time. Applied migrations stay, and a later run goes on."""
        if options["plan"] or options["check_unapplied"]:
            return super().handle(*args, **options)  # they change nothing
        with only_one(connections[options["database"]], self.stderr.write):
            return self._attempts(*args, **options)

    def _attempts(self, *args: Any, **options: Any) -> str | None:
        for attempt in range(1, LOCK_ATTEMPTS + 1):
            try:
                with without_statement_timeout(connections[options["database"]]):
                    return super().handle(*args, **options)
            except OperationalError as fault:
                if getattr(fault.__cause__, "sqlstate", "") != LOCK_NOT_AVAILABLE:
                    raise
                _leave_transaction(connections[options["database"]])
            if attempt < LOCK_ATTEMPTS:
                self.stderr.write(f"A table was in use for {LOCK_TIMEOUT_S} s; trying again ({attempt}).")
                pause(LOCK_PAUSE_S * random.uniform(0.5, 1.5))  # noqa: S311 - spreads attempts
        raise CommandError(
            f"A table was in use at each of {LOCK_ATTEMPTS} attempts. Migrations that were applied stay applied."
            " Look for long transactions in pg_stat_activity, and run the command again."
        )


def _leave_transaction(connection: BaseDatabaseWrapper) -> None:
    # Django leaves it open when one of the statements fails that a migration keeps for its end. `connect` forgets it.
    connection.close()
    connection.connect()


def pause(seconds: float) -> None:
    time.sleep(seconds)


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
