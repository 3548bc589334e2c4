"""Call records in the file of the embedded default. sqlite3 is loaded with it only: one MB."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

from django.db.backends.base.base import BaseDatabaseWrapper
from msgspec.structs import astuple

from audit.call_record import COLUMNS, CallRecord
from audit.statement import COLUMN_LIST, REFUSALS, TABLE, UPSERT, RecordRefused

if TYPE_CHECKING:
    import sqlite3

_ROW = f"({', '.join('?' * len(COLUMNS))})"
_ROWS = 128  # a statement


class SQLiteSink:
    """One transaction a batch; with synchronous=FULL it is on the disk when it has ended.

    Each statement costs a change of hands of the interpreter's lock, which a busy event loop gives up late. So rows go
    many to a statement, and a batch that fits into one needs no BEGIN and COMMIT around it.
    """

    gather_s = 0.001

    def __init__(self, wrapper: BaseDatabaseWrapper) -> None:
        import sqlite3

        self._wrapper = wrapper
        self._connection: sqlite3.Connection = wrapper.connection
        values = self._connection.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER)
        self._rows = min(_ROWS, values // len(COLUMNS))

    def commit(self, records: Sequence[CallRecord]) -> None:
        """One INSERT of all records, or a few in one transaction."""
        import sqlite3

        try:
            statements = list(_sqlite_statements(records, self._rows))
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
        """The file takes a writer."""
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.execute("ROLLBACK")

    def close(self) -> None:
        """Closes the file."""
        self._wrapper.close()


def _sqlite_statements(records: Sequence[CallRecord], rows: int) -> Iterator[tuple[str, list[object]]]:
    for start in range(0, len(records), rows):
        part = records[start : start + rows]
        yield _sqlite_insert(len(part)), [value for record in part for value in _sqlite_row(record)]


@cache
def _sqlite_insert(rows: int) -> str:
    return f"INSERT INTO {TABLE} ({COLUMN_LIST}) VALUES {', '.join([_ROW] * rows)} {UPSERT}"  # noqa: S608


def _sqlite_row(record: CallRecord) -> list[object]:
    """Values as Django stores them there: identifiers in hexadecimal, times in UTC without a zone."""
    row = list(astuple(record))
    row[0] = record.id.hex
    row[1] = str(record.timestamp.replace(tzinfo=None))
    row[2] = record.org_id.hex
    return row
