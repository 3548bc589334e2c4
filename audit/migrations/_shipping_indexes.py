"""Makes the indexes along which one organization's stream is read: docs/decisions/0047."""

from __future__ import annotations

from typing import Any

from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from audit.migrations._log_indexes import add_to_partitions
from audit.migrations._partitioning import ADMIN_TABLE, TABLE, make_index

COLUMNS = "(org_id, position, id) WHERE position IS NOT NULL"
OF_REQUESTS, OF_ADMIN = "request_log_stream_of_org", "admin_log_stream_of_org"


def add_indexes(apps: Any, schema_editor: BaseDatabaseSchemaEditor) -> None:
    connection = schema_editor.connection
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            add_to_partitions(connection, cursor, {OF_REQUESTS: COLUMNS})
            make_index(connection, cursor, OF_ADMIN, ADMIN_TABLE, COLUMNS)
            return
        for name, table in ((OF_REQUESTS, TABLE), (OF_ADMIN, ADMIN_TABLE)):
            cursor.execute(f"CREATE INDEX IF NOT EXISTS {name} ON {table} {COLUMNS}")
