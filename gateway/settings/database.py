"""DATABASES: SQLite for the embedded default, or PostgreSQL with a connection pool and timeouts on every wait."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from gateway.lib.session_timeouts import GIVEN_OPTIONS, HAS_POOLER, SessionTimeouts, with_timeouts
from gateway.settings import env

# gateway.asgi sets this variable before it loads the settings, because web processes get shorter timeouts.
PROCESS_VARIABLE = "GATEWAY_PROCESS"


def timeouts_of(process: str, statement_s: int) -> SessionTimeouts:
    """Timeouts of a process: in a web process a statement may take `statement_s`, elsewhere at least 300 s."""
    if process == "web":
        return SessionTimeouts(statement_s=statement_s, lock_s=min(5, statement_s), idle_in_transaction_s=60)
    # CELERY_TASK_TIME_LIMIT is 300 s; an operator's command may take that long for one statement, too.
    return SessionTimeouts(statement_s=max(300, statement_s), lock_s=60, idle_in_transaction_s=600)


SESSION_TIMEOUTS = timeouts_of(
    os.environ.get(PROCESS_VARIABLE, ""), env.integer("DATABASE_STATEMENT_TIMEOUT", 15, low=1, high=3_600)
)
# A call waits at most 5 s for its caller's rows (proxy.hot_path_database) and its audit row (audit.writer), so the
# database must give up before that.
HOT_PATH_TIMEOUTS = SessionTimeouts(statement_s=4, lock_s=4, idle_in_transaction_s=10)
# Three threads of the caller cache, and the readiness check. One more connection loads callers on the event loop.
HOT_PATH_CONNECTIONS = 4
# An unreachable server is detected in seconds, not after the kernel's 15 minutes.
TCP_OPTIONS = {
    "connect_timeout": 3,
    "keepalives_idle": 3,
    "keepalives_interval": 1,
    "keepalives_count": 3,
    "tcp_user_timeout": 5_000,  # milliseconds
}
POOLERS = ("none", "transaction")


def database_entry(var: Path) -> dict[str, Any]:
    """The default entry of DATABASES. Query parameters of DATABASE_URL win over these options."""
    url = env.text("DATABASE_URL")
    # Not through the URL parser, which would decode + and % in a path.
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
        "timeout": 5,  # seconds for a lock; after that a page answers 503 with Retry-After
        # FULL: an acknowledged row survives a power cut, not only a killed process.
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;",
    }
    return entry


def _server(entry: dict[str, Any]) -> dict[str, Any]:
    from gateway.lib.bounded_connection import bounded

    pooler = env.text("DATABASE_POOLER", "none")
    if pooler not in POOLERS:
        env.refuse("DATABASE_POOLER", f"must be one of {', '.join(POOLERS)}, not {pooler!r}.")
    # Without the pool, ASGI opens one server connection per request. The pool doubles its pause between attempts while
    # the server is down; reconnect_timeout ends a series early, so that the pause after an outage of minutes is a
    # second.
    pool = {
        "min_size": 1,
        "max_size": env.integer("DATABASE_POOL_SIZE", 10, low=2, high=200),
        "timeout": 2,
        "reconnect_timeout": 1,
        "connection_class": bounded(SESSION_TIMEOUTS.response_timeout_s),
    }
    given = entry.get("OPTIONS", {})
    entry["OPTIONS"] = {**TCP_OPTIONS, **given, "pool": pool}
    entry[GIVEN_OPTIONS] = given.get("options", "")
    entry[HAS_POOLER] = pooler == "transaction"
    if entry[HAS_POOLER]:
        entry["DISABLE_SERVER_SIDE_CURSORS"] = True  # a cursor belongs to one session; the pooler changes sessions
    entry["CONN_MAX_AGE"] = 0
    entry["CONN_HEALTH_CHECKS"] = True
    return with_timeouts(entry, SESSION_TIMEOUTS)
