"""DATABASES: a file for the embedded default, or PostgreSQL with a pool and an end to every wait."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from gateway.lib.session_timeouts import GIVEN_OPTIONS, HAS_POOLER, SessionTimeouts, with_timeouts
from gateway.settings import env

# gateway.asgi sets this variable before it loads the settings: a page must not hold a connection as long as a command.
PROCESS_VARIABLE = "GATEWAY_PROCESS"


def timeouts_of(process: str, statement_s: int) -> SessionTimeouts:
    """The timeouts of a web process, where a page may take `statement_s` over a statement, or of any other process."""
    if process == "web":
        return SessionTimeouts(statement_s=statement_s, lock_s=min(5, statement_s), idle_in_transaction_s=60)
    # A task of the worker is ended after 300 s; a command of an operator may take that long over one statement, too.
    return SessionTimeouts(statement_s=max(300, statement_s), lock_s=60, idle_in_transaction_s=600)


SESSION_TIMEOUTS = timeouts_of(
    os.environ.get(PROCESS_VARIABLE, ""), env.integer("DATABASE_STATEMENT_TIMEOUT", 15, low=1, high=3_600)
)
# Calls wait 5 s for the rows of a caller (proxy.snapshot) and for their own row (audit.writer), and not longer.
HOT_PATH_TIMEOUTS = SessionTimeouts(statement_s=4, lock_s=4, idle_in_transaction_s=10)
HOT_PATH_CONNECTIONS = 5  # the four threads that load callers, and the one that looks whether we can serve
# A server that does not answer packets any more is given up in seconds, not after the kernel's quarter of an hour.
TCP_OPTIONS = {
    "connect_timeout": 3,
    "keepalives_idle": 3,
    "keepalives_interval": 1,
    "keepalives_count": 3,
    "tcp_user_timeout": 5_000,  # milliseconds
}
POOLERS = ("none", "transaction")


def database_entry(var: Path) -> dict[str, Any]:
    """The service's entry of DATABASES. The query of DATABASE_URL wins."""
    url = env.text("DATABASE_URL")
    # A path goes in as it is: in an address, + and % would mean something else.
    entry: dict[str, Any] = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(var / "gateway.sqlite3")}
    if url:
        try:
            entry = env.reader.db_url_config(url)
        except Exception:
            env.refuse("DATABASE_URL", "is not a database address such as postgres://user@host:5432/name.")
    if entry["ENGINE"] == "django.db.backends.sqlite3":
        return _file(entry)
    if entry["ENGINE"] == "django.db.backends.postgresql":
        return _server(entry)
    return env.refuse("DATABASE_URL", "must name a PostgreSQL or SQLite database.")


def _file(entry: dict[str, Any]) -> dict[str, Any]:
    if not env.EMBEDDED:
        env.refuse("DATABASE_URL", "must name a PostgreSQL database in production.")
    entry["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",  # a deferred transaction that upgrades fails at once under contention
        "timeout": 5,  # seconds for a lock; a page that waits longer is better told to come back
        # FULL: a row that was acknowledged survives a power cut, not only a killed process.
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;",
    }
    return entry


def _server(entry: dict[str, Any]) -> dict[str, Any]:
    from gateway.lib.bounded_connection import bounded

    pooler = env.text("DATABASE_POOLER", "none")
    if pooler not in POOLERS:
        env.refuse("DATABASE_POOLER", f"must be one of {', '.join(POOLERS)}, not {pooler!r}.")
    # Without the pool, ASGI opens one server process per request. The pool doubles its pauses while the server is
    # away. An attempt that is given up early is begun anew by the next request, so that the pause after an outage of
    # minutes is a second and not minutes.
    pool = {
        "min_size": 1,
        "max_size": env.integer("DATABASE_POOL_SIZE", 10, low=2, high=200),
        "timeout": 2,
        "reconnect_timeout": 1,
        "connection_class": bounded(SESSION_TIMEOUTS.answer_s),
    }
    given = entry.get("OPTIONS", {})
    entry["OPTIONS"] = {**TCP_OPTIONS, **given, "pool": pool}
    entry[GIVEN_OPTIONS] = given.get("options", "")
    entry[HAS_POOLER] = pooler == "transaction"
    if entry[HAS_POOLER]:
        entry["DISABLE_SERVER_SIDE_CURSORS"] = True  # a cursor would be left behind on another session
    entry["CONN_MAX_AGE"] = 0
    entry["CONN_HEALTH_CHECKS"] = True
    return with_timeouts(entry, SESSION_TIMEOUTS)
