"""Adds rows of the log to the stored counters."""

from __future__ import annotations

import uuid
from datetime import date

from django.db import connection

from audit.sql_values import uuid_value
from audit.usage import row_ids
from audit.usage.durations import bucket_of
from audit.usage.fold import COUNTS, DURATIONS, ROW_ID_FUNCTION, day_statement, statements
from audit.usage.log_sql import BUCKET_FUNCTION, LogRows
from audit.usage_keys import WHOLE_DAY


def add_rows(rows: LogRows) -> None:
    """Adds them to hours, days and labels. Call it in the transaction that says that they are counted.

    Raises: django.db.Error.
    """
    add_functions()
    with connection.cursor() as cursor:
        for statement in statements(connection.vendor, rows.condition):
            cursor.execute(statement, rows.values)


def add_stored_hours(org_id: uuid.UUID, day: date) -> None:
    """Adds all stored hours of a day to the day. Raises: django.db.Error."""
    add_functions()
    chosen = row_ids.of_hours(org_id, day, 0, WHOLE_DAY)
    with connection.cursor() as cursor:
        for table in (COUNTS, DURATIONS):
            cursor.execute(day_statement(connection.vendor, table), [*map(uuid_value, (org_id, *chosen))])


def add_functions() -> None:
    """The connection to SQLite knows the functions that the texts of SQL name; PostgreSQL has its own."""
    if connection.vendor == "sqlite":
        connection.ensure_connection()
        connection.connection.create_function(ROW_ID_FUNCTION, -1, _row_id, deterministic=True)
        connection.connection.create_function(BUCKET_FUNCTION, 1, bucket_of, deterministic=True)


def _row_id(org_id: str, day: str, hour: int, *texts: object) -> str:
    """Of values as SQLite stores them."""
    return row_ids.row_id(uuid.UUID(org_id), date.fromisoformat(day), hour, [str(text) for text in texts]).hex
