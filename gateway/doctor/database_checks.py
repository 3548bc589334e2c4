"""The database: that it takes rows, how many connections it has, and whether a row is safe when it is acknowledged."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import closing
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import OperationalError, connection

from audit import partitions
from gateway import postgresql_check, readiness
from gateway.doctor.settings_checks import from_messages
from gateway.doctor.verdict import Finding, error, ok, warning
from gateway.lib import clock
from gateway.lib.session_timeouts import HAS_POOLER
from gateway.lib.unpooled_connection import unpooled

LONG_TRANSACTION_S = 600
# Share of max_connections in use.
CROWDED = 0.85
LEAST_FREE_BYTES, FEW_FREE_BYTES = 256 * 1024**2, 2 * 1024**3
DEAD_ROWS = 1_000_000


def is_server() -> bool:
    return connection.vendor == "postgresql"


def row(sql: str, *values: str) -> tuple[Any, ...]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return tuple(cursor.fetchone())


def database() -> Sequence[Finding]:
    state, _ = readiness.database_states()
    if state == "failed":
        if is_server() and _refuses_options():
            return [
                error(
                    "A pooler is in front of PostgreSQL and refuses the options of a session: set"
                    " DATABASE_POOLER=transaction."
                )
            ]
        return [error(f"The {connection.display_name} database does not answer or takes no rows. Check DATABASE_URL.")]
    if not is_server():
        return [ok("SQLite answers.")]
    (version,) = row("SHOW server_version")
    return [ok(f"PostgreSQL {version} answers and takes rows.")]


def _refuses_options() -> bool:
    with closing(unpooled(connection, "gateway-doctor")) as own:
        try:
            own.ensure_connection()
        except OperationalError as fault:
            return "unsupported startup parameter" in str(fault)
    return False


def migrations() -> Sequence[Finding]:
    _, state = readiness.database_states()
    if state == "failed":
        return [error("Migrations are missing in the database. Run migrate.")]
    return [ok("All migrations are applied.")]


def storage() -> Sequence[Finding]:
    """Free space of the folder of the embedded default."""
    if is_server():
        return []
    free = shutil.disk_usage(settings.VAR).free
    if free < FEW_FREE_BYTES:
        say = error if free < LEAST_FREE_BYTES else warning
        return [say(f"{free // 1024**2} MiB are free in {settings.VAR}. A full disk stops every call.")]
    return [ok(f"{free // 1024**3} GiB are free in {settings.VAR}.")]


def connections_enough() -> Sequence[Finding]:
    if not is_server():
        return []
    found = from_messages(postgresql_check.database_connections(None, databases=["default"]))
    used, most = row(
        "SELECT count(*), current_setting('max_connections')::int FROM pg_stat_activity"
        " WHERE backend_type = 'client backend'"
    )
    if used >= most * CROWDED:
        found.append(error(f"{used} of PostgreSQL's {most} connections are in use."))
    return found or [ok(f"{used} of PostgreSQL's {most} connections are in use.")]


def pooler() -> Sequence[Finding]:
    """A pooler gives its client another number than the server's process has."""
    if not is_server():
        return []
    connection.ensure_connection()
    (pid,) = row("SELECT pg_backend_pid()")
    return judged_pooler(
        is_there=pid != connection.connection.info.backend_pid,
        is_declared=bool(connection.settings_dict.get(HAS_POOLER)),
        statement_timeout=row("SHOW statement_timeout")[0],
    )


def judged_pooler(*, is_there: bool, is_declared: bool, statement_timeout: str) -> Sequence[Finding]:
    if is_there and not is_declared:
        return [
            warning(
                "A pooler is in front of PostgreSQL, and DATABASE_POOLER is none. In transaction mode set"
                " DATABASE_POOLER=transaction; in session mode all is well."
            )
        ]
    if is_declared and statement_timeout == "0":
        return [warning("Behind the pooler statements have no timeout: ALTER ROLE … SET statement_timeout = '15s'.")]
    if is_declared and not is_there:
        return [warning("DATABASE_POOLER=transaction, and no pooler is in front of PostgreSQL: statements are slower.")]
    return [ok("PgBouncer in transaction mode." if is_declared else "No pooler is in front of PostgreSQL.")]


def durability() -> Sequence[Finding]:
    """On how many disks an acknowledged call is. Spec: D158"""
    if not is_server():
        (mode,) = row("PRAGMA synchronous")
        if int(mode) < 2:
            return [error("SQLite runs without synchronous=FULL: a power cut loses acknowledged calls.")]
        return [ok("An acknowledged call is on one disk.")]
    commit, fsync, names = row(
        "SELECT current_setting('synchronous_commit'), current_setting('fsync'),"
        " current_setting('synchronous_standby_names')"
    )
    together, apart = row(
        "SELECT count(*) FILTER (WHERE sync_state IN ('sync', 'quorum')),"
        " count(*) FILTER (WHERE sync_state IN ('async', 'potential')) FROM pg_stat_replication"
    )
    return judged_durability(commit=commit, fsync=fsync, has_names=bool(names), together=together, apart=apart)


def judged_durability(*, commit: str, fsync: str, has_names: bool, together: int, apart: int) -> Sequence[Finding]:
    if fsync == "off" or commit == "off":
        name = "fsync" if fsync == "off" else "synchronous_commit"
        return [error(f"PostgreSQL runs with {name}=off: a power cut loses acknowledged calls.")]
    if has_names and commit == "local":
        return [warning("synchronous_commit=local: no commit waits for the standby that is named.")]
    if has_names and not together:
        return [warning("A synchronous standby is named, and none is connected: commits wait for it.")]
    if together:
        return [ok("An acknowledged call is on two disks: a synchronous standby has it.")]
    if apart:
        return [
            warning(
                "An acknowledged call is on one disk: the standby is asynchronous, and a failover loses the last calls"
                " and revocations."
            )
        ]
    return [ok("An acknowledged call is on one disk; there is no standby.")]


def partitions_ahead() -> Sequence[Finding]:
    if not partitions.is_partitioned():
        return []
    known = partitions.partitions()
    (strays,) = row(f"SELECT EXISTS (SELECT 1 FROM {partitions.DEFAULT})")  # noqa: S608
    return judged_partitions(known[-1].end if known else None, has_strays=bool(strays), now=clock.now())


def judged_partitions(end: datetime | None, *, has_strays: bool, now: datetime) -> Sequence[Finding]:
    found = []
    if end is None or end < now + timedelta(days=3):
        found.append(error("The request log has no partition for the coming days. Run audit_partitions."))
    elif end < now + timedelta(days=32):
        found.append(warning(f"Partitions end at {clock.rfc3339(end)}: the nightly task has not run."))
    if has_strays:
        found.append(warning("The default partition of the request log holds rows. Run audit_partitions."))
    return found or [ok(f"The request log has partitions until {end:%Y-%m-%d}.")]


def long_transactions() -> Sequence[Finding]:
    """They hold the stream of the logs back, and dead rows alive."""
    if not is_server():
        return []
    found = []
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid, application_name, extract(epoch FROM now() - xact_start)::int FROM pg_stat_activity"
            " WHERE xact_start < now() - make_interval(secs => %s) AND backend_type = 'client backend' ORDER BY 3 DESC",
            [LONG_TRANSACTION_S],
        )
        for pid, name, seconds in cursor.fetchall()[:5]:
            found.append(
                warning(
                    f"A transaction has been open for {seconds} s (process {pid}, {name or 'without a name'}): log"
                    " shipping, seals and usage wait for it."
                )
            )
        cursor.execute("SELECT gid FROM pg_prepared_xacts WHERE prepared < now() - interval '10 minutes'")
        found += [warning(f"A prepared transaction waits: {gid}. Log shipping waits too.") for (gid,) in cursor]
        cursor.execute(
            "SELECT relname, n_dead_tup FROM pg_stat_user_tables WHERE n_dead_tup > %s AND n_dead_tup > n_live_tup / 2",
            [DEAD_ROWS],
        )
        found += [warning(f"{name} has {dead:,} dead rows: vacuum does not keep up.") for name, dead in cursor]
    return found or [ok("No transaction is open for long.")]
