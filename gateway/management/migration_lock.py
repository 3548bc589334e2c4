"""One `migrate` at a time on a database: a lock of PostgreSQL's that ends with its session."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

from django.db.backends.base.base import BaseDatabaseWrapper

from gateway.lib.session_timeouts import HAS_POOLER
from gateway.lib.unpooled_connection import unpooled

# Any number that nothing else locks in this database.
LOCK_ID = 0x6D69_6772_6174_65
LOOK_EVERY_S = 1.0
WAITING = "Another migrate is running on this database; waiting for it to finish."


@contextmanager
def only_one(connection: BaseDatabaseWrapper, say: Callable[[str], object]) -> Iterator[None]:
    """`say` gets one sentence when another process has the lock; then this one waits for it, however long.

    The lock has a connection of its own: the command closes its own between attempts. Behind a pooler in transaction
    mode a session is nobody's, and on SQLite the file has a lock, so there is none.
    """
    if connection.vendor != "postgresql" or connection.settings_dict.get(HAS_POOLER):
        yield
        return
    with closing(unpooled(connection, "gateway-migrate-lock")) as own:
        if not _took(own):
            say(WAITING)
            while not _took(own):
                time.sleep(LOOK_EVERY_S)
        yield


def _took(own: BaseDatabaseWrapper) -> bool:
    # It asks again and again: a statement that waits would meet the session's timeouts.
    with own.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [LOCK_ID])
        return bool(cursor.fetchone()[0])
