"""Positions of final rows in the stream of a log.

On PostgreSQL a position is the id of the transaction that made the row final, plus the start of the cluster's era: rows
below the oldest open transaction can be handed out in order, without a lock. On SQLite, with its single writer, it is
one more than the highest. docs/decisions/0042
"""

from __future__ import annotations

import uuid
from typing import Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.expressions import Expression

from audit.sql_values import uuid_value

REQUEST_TABLE = "audit_requestauditentry"
ADMIN_TABLE = "audit_adminauditentry"
TRANSACTION_ID = "pg_current_xact_id()::text::bigint"
_OLDEST_OPEN = "pg_snapshot_xmin(pg_current_snapshot())::text::bigint"
# Cluster, database and table: a restored dump makes a new table, even in the same database.
_IDENTITY = (
    "(SELECT control.system_identifier || '-' || db.oid || '-' || 'audit_requestauditentry'::regclass::oid"
    " FROM pg_control_system() control, pg_database db WHERE db.datname = current_database())"
)
_START = f"(SELECT start FROM audit_streamera WHERE identity = {_IDENTITY})"  # noqa: S608
# Above every position that is known, here or to a consumer.
_BEGIN = (
    f"INSERT INTO audit_streamera (identity, start) SELECT {_IDENTITY}, GREATEST("  # noqa: S608
    f"(SELECT max(position) FROM {REQUEST_TABLE}), (SELECT max(position) FROM {ADMIN_TABLE}),"
    " (SELECT max(position) FROM audit_streamcursor), 0) ON CONFLICT (identity) DO NOTHING"
)


def begin_era(connection: BaseDatabaseWrapper) -> int:
    """Returns the start of the PostgreSQL cluster's era, which begins with the first call. Raises: django.db.Error."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {_START}")
        if (row := cursor.fetchone()) and row[0] is not None:
            return int(row[0])
        cursor.execute(_BEGIN)
        cursor.execute(f"SELECT {_START}")
        return int(cursor.fetchone()[0])


def next_position_sqlite(table: str) -> str:
    # Above those of consumers too: retention may have removed the highest rows. The condition is that of the index.
    highest = f"SELECT MAX(position) FROM {table} WHERE position IS NOT NULL"  # noqa: S608
    consumed = "SELECT MAX(position) FROM audit_streamcursor"
    return f"(SELECT MAX(COALESCE(({highest}), 0), COALESCE(({consumed}), 0)) + 1)"


class Beyond(Expression):
    """The condition that a row comes after a place of the stream. Both databases walk the index (position, id)."""

    conditional = True
    output_field = models.BooleanField()

    def __init__(self, table: str, position: int, row_id: uuid.UUID) -> None:
        super().__init__()
        self._table, self._position, self._row_id = table, position, row_id

    def as_sql(self, compiler: Any, connection: Any) -> Any:
        return f"({self._table}.position, {self._table}.id) > (%s, %s)", (self._position, uuid_value(self._row_id))


class NewPosition(Expression):
    """The position of a row that this transaction makes final; None in a cluster whose era has not begun."""

    output_field = models.BigIntegerField()

    def __init__(self, table: str = ADMIN_TABLE) -> None:
        super().__init__()
        self._table = table

    def as_sqlite(self, compiler: Any, connection: Any) -> tuple[str, tuple[object, ...]]:
        return next_position_sqlite(self._table), ()

    def as_postgresql(self, compiler: Any, connection: Any) -> tuple[str, tuple[object, ...]]:
        return f"{_START} + {TRANSACTION_ID}", ()


class ReadableBelow(Expression):
    """The lowest position that an open transaction may still use; all rows below it are committed or gone."""

    output_field = models.BigIntegerField()

    def as_sqlite(self, compiler: Any, connection: Any) -> tuple[str, tuple[object, ...]]:
        return "9223372036854775807", ()

    def as_postgresql(self, compiler: Any, connection: Any) -> tuple[str, tuple[object, ...]]:
        return f"{_START} + {_OLDEST_OPEN}", ()
