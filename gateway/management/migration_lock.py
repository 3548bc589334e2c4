"""One `migrate` at a time on a database: a lock of PostgreSQL's that ends with its session."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

from django.db.backends.base.base import BaseDatabaseWrapper

from gateway.lib import clock
from gateway.lib.bounded_connection import BoundedWrapper
from gateway.lib.session_timeouts import HAS_POOLER
from gateway.lib.unpooled_connection import unpooled

# Any number that nothing else locks in this database.
LOCK_ID = 0x6D69_6772_6174_65
LOOK_EVERY_S = 1.0
SAY_EVERY_S = 60.0
WAITING = "Another migrate is running on this database"
NAME = "gateway-migrate-lock"
HOST_CHARACTERS = 30  # PostgreSQL cuts the name of a session at 63 bytes
# The server ends the session of a host that is gone after 25 s, and no setting of the role ends that of a long migrate.
# On a local socket the server has no packets to wait for, and takes the first three without effect.
_SESSION = {
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
    "idle_session_timeout": "0",
}
_HOLDER = (
    "SELECT a.application_name, host(a.client_addr), a.state_change, a.pid"
    " FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid"
    " WHERE l.locktype = 'advisory' AND l.granted AND l.classid = %s AND l.objid = %s AND l.objsubid = 1"
    " AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


@contextmanager
def only_one(connection: BaseDatabaseWrapper, say: Callable[[str], object]) -> Iterator[None]:
    """`say` gets a sentence about the process that has the lock, once a minute; then this one waits, however long.

    The lock has a connection of its own: the command closes its own between attempts. Behind a pooler in transaction
    mode a session is nobody's, and on SQLite the file has a lock, so there is none. Raises: OperationalError when the
    server does not answer for seconds.
    """
    if connection.vendor != "postgresql" or connection.settings_dict.get(HAS_POOLER):
        yield
        return
    with closing(unpooled(connection, _session_name(), BoundedWrapper)) as own:
        _prepare(own)
        say_at_s = 0.0
        while not _took(own):
            if time.monotonic() >= say_at_s:
                say(f"{WAITING}{_holder(own)}; waiting for it to finish.")
                say_at_s = time.monotonic() + SAY_EVERY_S
            time.sleep(LOOK_EVERY_S)
        yield


def _session_name() -> str:
    return f"{NAME} {os.getpid()}@{socket.gethostname()[:HOST_CHARACTERS]}"


def _prepare(own: BaseDatabaseWrapper) -> None:
    with own.cursor() as cursor:
        for name, value in _SESSION.items():
            cursor.execute(f"SET {name} = {value}")


def _took(own: BaseDatabaseWrapper) -> bool:
    # It asks again and again: a statement that waits would meet the session's timeouts.
    with own.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [LOCK_ID])
        return bool(cursor.fetchone()[0])


def _holder(own: BaseDatabaseWrapper) -> str:
    """Words about the session that has the lock; empty when it has just ended.

    The holder says nothing after it took the lock, so its last change of state is that moment.
    """
    with own.cursor() as cursor:
        cursor.execute(_HOLDER, [LOCK_ID >> 32, LOCK_ID & 0xFFFF_FFFF])
        found = cursor.fetchone()
    if found is None:
        return ""
    name, address, since, session = found
    process, _, host = name.removeprefix(NAME).strip().partition("@")
    words = f", process {process} on {host}" if host else ""
    words += f" ({address})" if address else ""
    words += f", since {clock.rfc3339(since)}" if since else ""
    return f"{words}, in the database’s session {session}"
