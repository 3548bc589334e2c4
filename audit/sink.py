"""Where call records are committed: one connection, one statement and one transaction a batch. Used by one thread.

The drivers are loaded with their database only: psycopg takes 9 MB, sqlite3 one.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.utils import load_backend
from msgspec.structs import astuple

from audit.call_record import COLUMNS, UNKNOWN, CallRecord

if TYPE_CHECKING:
    import sqlite3

    import psycopg
    from psycopg import pq

TABLE = "audit_requestauditentry"
# What an outcome knows better than the intent it replaces.
OUTCOME_COLUMNS = (
    "status",
    "error_code",
    "duration_ms",
    "vendor_ms",
    "credential_scope",
    "credential_name",
    "cached",
    "response_bytes",
)
_LIST = ", ".join(f'"{column}"' for column in COLUMNS)
_SET = ", ".join(f"{column} = EXCLUDED.{column}" for column in OUTCOME_COLUMNS)
# One id may be written twice: intent then outcome, or the same batch again after an answer that was lost. A finished
# row is never changed, so neither a late intent nor a repetition can undo or double anything.
_UPSERT = (
    f"ON CONFLICT (id) DO UPDATE SET {_SET} WHERE {TABLE}.status = '{UNKNOWN}' AND {TABLE}.org_id = EXCLUDED.org_id"
)
_POSTGRESQL = (
    f"INSERT INTO {TABLE} ({_LIST}) SELECT {_LIST} FROM json_populate_recordset(NULL::{TABLE}, $1::json) {_UPSERT}"  # noqa: S608
).encode()
_STATEMENT = b"keep_call_records"
_ROW = f"({', '.join('?' * len(COLUMNS))})"
_SQLITE_ROWS = 128  # a statement
_REFUSALS = (ValueError, TypeError, OverflowError)  # of a value that no column could hold
CONNECT_TIMEOUT_S = 3


class RecordRefused(Exception):
    """The database is well, but at least one record of the batch cannot be stored. Nothing of the batch was."""


class Sink(Protocol):
    """A place that keeps records. Any other exception than RecordRefused means: broken, close it and open another.

    `gather_s`: how long a commit may wait for more records while several come at a time; 0 where commits are cheap.
    """

    gather_s: float

    def commit(self, records: Sequence[CallRecord]) -> None:
        """Every record is durable, none twice; ids differ within the batch. Raises: RecordRefused."""

    def close(self) -> None:
        """The connection is given back; never raises."""


def open_sink(database: Mapping[str, Any] | None = None) -> Sink:
    """A connected sink on `database` (an entry of DATABASES), by default on the service's own.

    Its connection is its own: taken from the pool it would be one less for requests, all the time.
    Raises: django.db.Error when the database cannot be reached.
    """
    config: dict[str, Any] = copy.deepcopy(dict(database or connections["default"].settings_dict))
    postgresql = config["ENGINE"] == "django.db.backends.postgresql"
    options = config["OPTIONS"]
    if postgresql:
        options.pop("pool", None)
        # A server that vanished without a word is given up in seconds, not after the kernel's two hours.
        for name, value in {
            "connect_timeout": CONNECT_TIMEOUT_S,
            "keepalives_idle": 3,
            "keepalives_interval": 1,
            "keepalives_count": 3,
            "tcp_user_timeout": 5_000,
        }.items():
            options.setdefault(name, value)
        options["application_name"] = "gateway-audit"
    else:
        options["timeout"] = 1  # the writer itself tries again, and looks at its deadlines in between
    wrapper: BaseDatabaseWrapper = load_backend(config["ENGINE"]).DatabaseWrapper(config, "default")
    wrapper.ensure_connection()
    return PostgreSQLSink(wrapper) if postgresql else SQLiteSink(wrapper)


class PostgreSQLSink:
    """One JSON document a batch, unpacked by the server: the cheapest for our process of all ways that were measured.

    The call into libpq blocks without the interpreter's lock, and one statement outside a transaction block is its own
    transaction: one round trip, durable when it returns. The statement is prepared, because planning it takes the
    server twice as long as running it.
    """

    gather_s = 0.0

    def __init__(self, wrapper: BaseDatabaseWrapper) -> None:
        # The wrapper has made the connection as settings say; itself it may not be used in an event loop.
        self._connection: psycopg.Connection[Any] = wrapper.connection
        self._pgconn = self._connection.pgconn
        self.is_prepared = True
        self._is_under_way = False
        self._results: list[pq.abc.PGresult] = []
        _judge(self._pgconn.prepare(_STATEMENT, _POSTGRESQL))

    def commit(self, records: Sequence[CallRecord]) -> None:
        """One INSERT of all records."""
        from psycopg import errors

        document = _document(records)
        if self.is_prepared:
            try:
                _judge(self._pgconn.exec_prepared(_STATEMENT, [document]))
                return
            except errors.InvalidSqlStatementName:  # a pooler between us gave us another connection of the server
                self.is_prepared = False
        _judge(self._pgconn.exec_params(_POSTGRESQL, [document]))

    # --- for an event loop that waits for the socket: see audit.commit_lane -----------------------------------------

    def fileno(self) -> int:
        """See LoopSink."""
        return int(self._pgconn.socket)

    def begin(self, records: Sequence[CallRecord]) -> bool:
        """See LoopSink."""
        document = _document(records)
        self._pgconn.nonblocking = 1
        self._results = []
        self._pgconn.send_query_prepared(_STATEMENT, [document])
        self._is_under_way = True
        return self.flush()

    def flush(self) -> bool:
        """See LoopSink."""
        return not self._pgconn.flush()

    def ended(self) -> bool:
        """See LoopSink."""
        self._pgconn.consume_input()
        if not self._is_under_way:
            return False
        while not self._pgconn.is_busy():
            result = self._pgconn.get_result()
            if result is None:
                self._is_under_way = False
                for result in self._results:
                    _judge(result)
                return True
            self._results.append(result)
        return False

    def close(self) -> None:
        """Ends the session."""
        self._connection.close()


def _document(records: Sequence[CallRecord]) -> bytes:
    """Raises: RecordRefused."""
    try:
        return msgspec.json.encode(records)
    except _REFUSALS as fault:
        raise RecordRefused(type(fault).__name__) from fault


def _judge(result: pq.abc.PGresult) -> None:
    """Raises: RecordRefused, psycopg.Error."""
    from psycopg import errors, pq

    if result.status == pq.ExecStatus.COMMAND_OK:
        return
    error = errors.error_from_result(result)
    if isinstance(error, errors.DataError | errors.IntegrityError):
        raise RecordRefused(type(error).__name__) from error
    raise error


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
        self._rows = min(_SQLITE_ROWS, values // len(COLUMNS))

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
            if isinstance(fault, (sqlite3.IntegrityError, sqlite3.DataError, sqlite3.ProgrammingError, *_REFUSALS)):
                raise RecordRefused(type(fault).__name__) from fault
            raise

    def close(self) -> None:
        """Closes the file."""
        self._wrapper.close()


def _sqlite_statements(records: Sequence[CallRecord], rows: int) -> Iterator[tuple[str, list[object]]]:
    for start in range(0, len(records), rows):
        part = records[start : start + rows]
        yield _sqlite_insert(len(part)), [value for record in part for value in _sqlite_row(record)]


@cache
def _sqlite_insert(rows: int) -> str:
    return f"INSERT INTO {TABLE} ({_LIST}) VALUES {', '.join([_ROW] * rows)} {_UPSERT}"  # noqa: S608


def _sqlite_row(record: CallRecord) -> list[object]:
    """Values as Django stores them there: identifiers in hexadecimal, times in UTC without a zone."""
    row = list(astuple(record))
    row[0] = record.id.hex
    row[1] = str(record.timestamp.replace(tzinfo=None))
    row[2] = record.org_id.hex
    return row
