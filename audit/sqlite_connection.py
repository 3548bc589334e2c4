"""Call records in the SQLite file of the embedded default. Imported only for such a database: sqlite3 takes 1 MB."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

from django.db.backends.base.base import BaseDatabaseWrapper
from msgspec.structs import astuple

from audit.call_record import COLUMNS, UNKNOWN, CallRecord
from audit.statement import COLUMN_LIST, REFUSALS, TABLE, UPSERT, RecordRefused
from audit.stream_position import next_position_sqlite

if TYPE_CHECKING:
    import sqlite3

# An outcome is final at once; an intent is not.
_ROW = f"({', '.join('?' * len(COLUMNS))}, CASE ? WHEN '{UNKNOWN}' THEN NULL ELSE {next_position_sqlite(TABLE)} END)"
_ROW_VALUES = len(COLUMNS) + 1
_STATUS = COLUMNS.index("status")
_ROWS = 128  # of one statement


class SQLiteAuditConnection:
    """One transaction for each batch; synchronous=FULL makes it durable."""

    gather_s = 0.001

    def __init__(self, wrapper: BaseDatabaseWrapper) -> None:
        import sqlite3

        self._wrapper = wrapper
        self._connection: sqlite3.Connection = wrapper.connection
        values = self._connection.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER)
        # Each statement passes the interpreter's lock, which a busy event loop returns late, so one holds many rows.
        self._rows = min(_ROWS, values // _ROW_VALUES)

    def commit(self, records: Sequence[CallRecord]) -> None:
        import sqlite3

        try:
            statements = list(_sqlite_statements(records, self._rows))
            # A single statement is its own transaction.
            if len(statements) > 1:
                self._connection.execute("BEGIN IMMEDIATE")
            for sql, values in statements:
                self._connection.execute(sql, values)
            if len(statements) > 1:
                self._connection.execute("COMMIT")
        except BaseException as fault:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            if isinstance(fault, (sqlite3.IntegrityError, sqlite3.DataError, sqlite3.ProgrammingError, *REFUSALS)):
                raise RecordRefused(type(fault).__name__) from fault
            raise

    def probe(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.execute("ROLLBACK")

    def for_loop(self) -> None:
        # A commit to a file blocks.
        return None

    def close(self) -> None:
        self._wrapper.close()


def _sqlite_statements(records: Sequence[CallRecord], rows: int) -> Iterator[tuple[str, list[object]]]:
    for start in range(0, len(records), rows):
        part = records[start : start + rows]
        yield _sqlite_insert(len(part)), [value for record in part for value in _sqlite_row(record)]


@cache
def _sqlite_insert(rows: int) -> str:
    return f"INSERT INTO {TABLE} ({COLUMN_LIST}, position) VALUES {', '.join([_ROW] * rows)} {UPSERT}"  # noqa: S608


def _sqlite_row(record: CallRecord) -> list[object]:
    # As Django stores them in SQLite: ids in hexadecimal, times in UTC without a zone.
    row = list(astuple(record))
    row[0] = record.id.hex
    row[1] = str(record.timestamp.replace(tzinfo=None))
    row[2] = record.org_id.hex
    row.append(row[_STATUS])
    return row
