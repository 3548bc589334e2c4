"""Turns the request log of PostgreSQL into a partitioned table while calls go on.

The table becomes the first partition as it is: no row is copied. Indexes are made beside the calls, a check of the
ids' bound is validated beside them, and the change of names takes the table's lock for milliseconds.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import OperationalError, transaction
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations import SeparateDatabaseAndState

from gateway.lib.session_timeouts import HAS_POOLER

TABLE = "audit_requestauditentry"
ADMIN_TABLE = "audit_adminauditentry"
BEFORE = f"{TABLE}_before"
OLD_INDEXES = tuple(
    "request_audit_by_org request_audit_by_user request_audit_by_vendor request_audit_by_tool request_audit_by_status"
    " request_audit_by_request request_audit_rejected".split()
)
# NULLS LAST, although no id is NULL: audit.newest_first says why.
INDEXES = {
    "request_log_by_org": "(org_id, id DESC NULLS LAST)",
    "request_log_by_user": "(org_id, user_id, id DESC NULLS LAST)",
    "request_log_by_vendor": "(org_id, vendor, id DESC NULLS LAST)",
    "request_log_by_request": "(org_id, request_id, id DESC NULLS LAST)",
    "request_log_stream": "(position, id) WHERE position IS NOT NULL",
    "request_log_not_success": "(org_id, status, id DESC NULLS LAST) WHERE NOT (status = 'success')",
    "request_log_rejected": "(org_id, id DESC NULLS LAST) WHERE error_code = 'vendor_rejected_credentials'",
    "request_log_open": "(id) WHERE position IS NULL",
}
ADMIN_INDEXES = {
    "admin_log_by_org": "(org_id, id DESC NULLS LAST)",
    "admin_log_by_event": "(org_id, event_type, id DESC NULLS LAST)",
    "admin_log_by_actor": "(org_id, actor_id, id DESC NULLS LAST)",
    "admin_log_by_target": "(org_id, target_id, id DESC NULLS LAST)",
    "admin_log_stream": "(position, id) WHERE position IS NOT NULL",
    "admin_log_open": "(id) WHERE position IS NULL",
}
FIRST_POSITION = 1  # of all rows that there are
MAY_CHANGE_FOR = timedelta(minutes=15)  # rows younger than this may still get their outcome
MONTHS_AHEAD = 3
LOCK_TIMEOUT_MS = 500
LOCK_ATTEMPTS = 120
LOCK_PAUSE_S = 0.5
LOCK_NOT_AVAILABLE = "55P03"
Execute = Callable[..., None]


class ExceptOnPostgreSQL(SeparateDatabaseAndState):
    """Operations for other databases; on PostgreSQL they change the state alone."""

    def __init__(self, operations: list[Any]) -> None:
        super().__init__(database_operations=operations, state_operations=operations)

    def database_forwards(self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, *states: Any) -> None:
        if schema_editor.connection.vendor != "postgresql":
            super().database_forwards(app_label, schema_editor, *states)

    def database_backwards(self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, *states: Any) -> None:
        if schema_editor.connection.vendor != "postgresql":
            super().database_backwards(app_label, schema_editor, *states)


def partition(apps: Any, schema_editor: BaseDatabaseSchemaEditor) -> None:
    connection = schema_editor.connection
    if connection.vendor != "postgresql":
        return
    now = datetime.now(UTC)
    with connection.cursor() as cursor:
        run = cursor.execute
        if not _is_partitioned(cursor):
            _prepare(connection, cursor, now)
            _replace(connection, run, now)
        for name in OLD_INDEXES:
            patiently(connection, run, f"DROP INDEX CONCURRENTLY IF EXISTS {name}")


def _prepare(connection: Any, cursor: Any, now: datetime) -> None:
    run = cursor.execute
    for table in (TABLE, ADMIN_TABLE):
        with_lock(connection, run, lambda table=table: _add_position(run, table))  # type: ignore[misc]
    # Rows that may still change are not final yet.
    run(
        f"UPDATE {TABLE} SET position = NULL WHERE id >= %s AND (status = 'unknown' OR count_parts IS NOT NULL)",  # noqa: S608
        [_first_id(now - MAY_CHANGE_FOR)],
    )
    for name, columns in INDEXES.items():
        make_index(connection, cursor, f"{name}_before", TABLE, columns)
    for name, columns in ADMIN_INDEXES.items():
        make_index(connection, cursor, name, ADMIN_TABLE, columns)
    patiently(connection, run, "DROP INDEX CONCURRENTLY IF EXISTS admin_audit_by_org")


def _replace(connection: Any, run: Execute, now: datetime) -> None:
    """The check of the bound goes again when this fails: it would refuse the rows of a later month."""
    bound = _first_id(_month(now, 1 if _month(now, 1) - now > timedelta(days=7) else 2))
    drop = f"ALTER TABLE {TABLE} DROP CONSTRAINT IF EXISTS {BEFORE}_ids"
    add = f"ALTER TABLE {TABLE} ADD CONSTRAINT {BEFORE}_ids CHECK (id < '{bound}') NOT VALID"
    with_lock(connection, run, lambda: (run(drop), run(add)))
    try:
        patiently(connection, run, f"ALTER TABLE {TABLE} VALIDATE CONSTRAINT {BEFORE}_ids")
        with_lock(connection, run, lambda: _swap(run, bound, now))
    except BaseException:
        with_lock(connection, run, lambda: run(drop))
        raise


def _add_position(run: Execute, table: str) -> None:
    # A default that is dropped at once: the rows that there are have it without being written.
    run(f"ALTER TABLE {table} ADD COLUMN IF NOT EXISTS position bigint DEFAULT {FIRST_POSITION}")
    run(f"ALTER TABLE {table} ALTER COLUMN position DROP DEFAULT")


def make_index(connection: Any, cursor: Any, name: str, table: str, columns: str) -> None:
    cursor.execute("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)", [name])
    row = cursor.fetchone()
    if row and row[0]:
        return
    # An earlier attempt was stopped.
    patiently(connection, cursor.execute, f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
    patiently(connection, cursor.execute, f"CREATE INDEX CONCURRENTLY {name} ON {table} {columns}")


def _swap(run: Execute, bound: uuid.UUID, now: datetime) -> None:
    run(f"LOCK TABLE {TABLE} IN ACCESS EXCLUSIVE MODE")
    run(f"ALTER TABLE {TABLE} RENAME TO {BEFORE}")
    run(f"ALTER INDEX {TABLE}_pkey RENAME TO {BEFORE}_pkey")
    run(f"CREATE TABLE {TABLE} (LIKE {BEFORE} INCLUDING DEFAULTS INCLUDING CONSTRAINTS) PARTITION BY RANGE (id)")
    run(f"ALTER TABLE {TABLE} DROP CONSTRAINT {BEFORE}_ids")
    run(f"ALTER TABLE {TABLE} ADD PRIMARY KEY (id)")
    for name, columns in INDEXES.items():
        run(f"CREATE INDEX {name} ON {TABLE} {columns}")
    run(f"ALTER TABLE {TABLE} ATTACH PARTITION {BEFORE} FOR VALUES FROM (MINVALUE) TO ('{bound}')")
    for later in range(MONTHS_AHEAD + 1):
        start, end = _first_id(_month(now, later)), _first_id(_month(now, later + 1))
        if start >= bound:
            month = f"{TABLE}_{_month(now, later):%Y_%m}"
            run(f"CREATE TABLE {month} PARTITION OF {TABLE} FOR VALUES FROM ('{start}') TO ('{end}')")
    run(f"CREATE TABLE {TABLE}_default PARTITION OF {TABLE} DEFAULT")


def _is_partitioned(cursor: Any) -> bool:
    cursor.execute("SELECT relkind = 'p' FROM pg_class WHERE oid = to_regclass(%s)", [TABLE])
    return bool(cursor.fetchone()[0])


def with_lock(connection: Any, run: Execute, change: Callable[[], object]) -> None:
    # A statement that waits for the table's lock holds up the calls behind it, so it gives up soon and tries again.
    for attempt in range(1, LOCK_ATTEMPTS + 1):
        try:
            with transaction.atomic(using=connection.alias):
                run(f"SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS}")
                change()
            return
        except OperationalError as fault:
            if getattr(fault.__cause__, "sqlstate", "") != LOCK_NOT_AVAILABLE or attempt == LOCK_ATTEMPTS:
                raise
            time.sleep(LOCK_PAUSE_S)


def patiently(connection: Any, run: Execute, statement: str) -> None:
    """These wait for the transactions that are open, and no call waits for them meanwhile."""
    if connection.settings_dict.get(HAS_POOLER):  # other clients share the session
        run(statement)
        return
    with connection.cursor() as cursor:
        cursor.execute("SHOW lock_timeout")
        usual = cursor.fetchone()[0]
    run("SET lock_timeout = 0")
    try:
        run(statement)
    finally:
        if not connection.connection.closed:
            run(f"SET lock_timeout = '{usual}'")


def _month(moment: datetime, later: int) -> datetime:
    months = moment.year * 12 + moment.month - 1 + later
    return datetime(months // 12, months % 12 + 1, 1, tzinfo=UTC)


def _first_id(moment: datetime) -> uuid.UUID:
    return uuid.UUID(int=int(moment.timestamp() * 1000) << 80)
