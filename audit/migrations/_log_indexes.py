"""Makes the indexes of the request log while calls go on: docs/decisions/0046.

On PostgreSQL each partition gets its index beside the calls. The index of the whole table becomes valid when the last
partition has one, and a partition that is made meanwhile gets its own when it is attached. Each step finds out whether
an earlier attempt has made it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from audit.migrations._partitioning import TABLE, make_index, patiently, with_lock
from audit.partitions import SETTINGS

# On PostgreSQL. NULLS LAST: see audit.newest_first.
INDEXES = {
    "request_log_of_org": "(org_id, id DESC NULLS LAST) INCLUDE (vendor, tool, source)",
    "request_log_of_user": "(org_id, user_id, id DESC NULLS LAST) INCLUDE (vendor, tool, source)",
    "request_log_of_vendor": "(org_id, vendor, tool, id DESC NULLS LAST) INCLUDE (source)",
    # Four bytes of hash instead of two ids. The organization is hashed too: callers choose the ids of their requests.
    "request_log_of_request": "USING hash ((org_id::text || request_id))",
    "request_log_of_status": (
        "(org_id, status, id DESC NULLS LAST) INCLUDE (user_id, vendor, tool, source) WHERE NOT (status = 'success')"
    ),
}
ON_SQLITE = {
    "request_log_of_org": "(org_id, id, vendor, tool, source)",
    "request_log_of_user": "(org_id, user_id, id, vendor, tool, source)",
    "request_log_of_vendor": "(org_id, vendor, id, tool, source)",
    "request_log_of_request": "(org_id, request_id, id)",
    "request_log_of_status": (
        "(org_id, status, id, user_id, vendor, tool, source) WHERE NOT (status = 'success')"
    ),
}
REPLACED = tuple(
    "request_log_by_org request_log_by_user request_log_by_vendor request_log_by_request request_log_not_success".split()
)


def replace_indexes(apps: Any, schema_editor: BaseDatabaseSchemaEditor) -> None:
    connection = schema_editor.connection
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            _replace_on_partitions(connection, cursor)
            return
        for name, columns in ON_SQLITE.items():
            cursor.execute(f"CREATE INDEX IF NOT EXISTS {name} ON {TABLE} {columns}")
        for name in REPLACED:
            cursor.execute(f"DROP INDEX IF EXISTS {name}")


def _replace_on_partitions(connection: Any, cursor: Any) -> None:
    run = cursor.execute
    add_to_partitions(connection, cursor, INDEXES)
    for partition in partitions_of(connection):
        patiently(connection, run, f"ALTER TABLE {partition} SET ({SETTINGS})")
        # The statistics of an index's expression; without them the planner may not take the index.
        patiently(connection, run, f"ANALYZE {partition}")
    for name in REPLACED:
        drop = f"DROP INDEX IF EXISTS {name}"
        with_lock(connection, run, lambda drop=drop: run(drop))  # type: ignore[misc]


def add_to_partitions(connection: Any, cursor: Any, indexes: Mapping[str, str]) -> None:
    """`indexes`: columns by name."""
    run = cursor.execute
    for name, columns in indexes.items():
        make = f"CREATE INDEX IF NOT EXISTS {name} ON ONLY {TABLE} {columns}"
        with_lock(connection, run, lambda make=make: run(make))  # type: ignore[misc]
        for partition in partitions_of(connection):
            if not _has_part(cursor, name, partition):
                part = f"{name}{partition.removeprefix(TABLE)}"
                make_index(connection, cursor, part, partition, columns)
                attach = f"ALTER INDEX {name} ATTACH PARTITION {part}"
                with_lock(connection, run, lambda attach=attach: run(attach))  # type: ignore[misc]


def add_to_table(cursor: Any, indexes: Mapping[str, str]) -> None:
    """On SQLite, which has one writer."""
    for name, columns in indexes.items():
        cursor.execute(f"CREATE INDEX IF NOT EXISTS {name} ON {TABLE} {columns}")


def partitions_of(connection: Any) -> list[str]:
    """Returns all of them: with the default one, and without one that is attached while this runs."""
    sql = "SELECT relname FROM pg_inherits JOIN pg_class ON oid = inhrelid WHERE inhparent = %s::regclass ORDER BY 1"
    with connection.cursor() as cursor:
        cursor.execute(sql, [TABLE])
        return [name for (name,) in cursor.fetchall()]


def _has_part(cursor: Any, name: str, partition: str) -> bool:
    cursor.execute(
        "SELECT 1 FROM pg_inherits JOIN pg_index ON indexrelid = inhrelid"
        " WHERE inhparent = %s::regclass AND indrelid = %s::regclass",
        [name, partition],
    )
    return cursor.fetchone() is not None
