"""Call records in PostgreSQL. Imported only for such a database, because psycopg takes 9 MB."""

from __future__ import annotations

import select
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import structlog
from django.db.backends.base.base import BaseDatabaseWrapper

from audit.call_record import UNKNOWN, CallRecord
from audit.statement import COLUMN_LIST, REFUSALS, TABLE, UPSERT, RecordRefused
from audit.stream_position import TRANSACTION_ID, begin_era
from gateway.lib.session_timeouts import HAS_POOLER

if TYPE_CHECKING:
    import psycopg
    from psycopg import pq

# An outcome is final at once; an intent is not.
_COMMAND = (
    f"INSERT INTO {TABLE} ({COLUMN_LIST}, position) SELECT {COLUMN_LIST},"  # noqa: S608
    f" CASE WHEN status <> '{UNKNOWN}' THEN $2::bigint + {TRANSACTION_ID} END"
    f" FROM json_populate_recordset(NULL::{TABLE}, $1::json) {UPSERT}"
).encode()
STATEMENT_NAME = b"keep_call_records"
COMMIT_TIMEOUT_S = 5.0  # of one batch
PROBE_TIMEOUT_S = 2.0  # also of the prepare on a new connection
logger = structlog.get_logger(__name__)
# Databases found behind a pooler, by host, port and name: no statement is prepared there.
_poolers_found: set[tuple[Any, ...]] = set()


class PostgreSQLAuditConnection:
    """Sends each batch as one JSON document, the cheapest way for our process of all that were measured.

    One statement outside a transaction block is its own transaction: one round trip, durable when it is answered.
    """

    gather_s = 0.0

    def __init__(self, wrapper: BaseDatabaseWrapper) -> None:
        """Raises: psycopg.Error; TimeoutError."""
        # The wrapper applies the settings to the connection; an event loop may not use the wrapper itself.
        self._connection: psycopg.Connection[Any] = wrapper.connection
        self._pgconn = self._connection.pgconn
        self._address = _address(wrapper.settings_dict)
        # Planning the statement takes the server twice as long as running it, so it is prepared. Not behind a pooler in
        # transaction mode: each statement may get another session.
        self._uses_prepared = not wrapper.settings_dict.get(HAS_POOLER) and self._address not in _poolers_found
        self._is_under_way = False
        self._results: list[pq.abc.PGresult] = []
        try:
            # The connection stays with one cluster: after a restore, it is another connection.
            self._era_start = str(begin_era(wrapper)).encode()
            self._pgconn.nonblocking = 1
            if self._uses_prepared:
                self._prepare()
        except BaseException:
            self.close()
            raise

    def commit(self, records: Sequence[CallRecord]) -> None:
        """Raises: RecordRefused; psycopg.Error; TimeoutError after COMMIT_TIMEOUT_S."""
        self._send_and_wait(_document(records), COMMIT_TIMEOUT_S)

    def probe(self) -> None:
        # The statement without a record: it fails on a read-only database or a locked table.
        self._send_and_wait(b"[]", PROBE_TIMEOUT_S)

    def for_loop(self) -> PostgreSQLAuditConnection:
        return self

    def close(self) -> None:
        self._connection.close()

    # --- LoopConnection: for an event loop that waits for the socket --------------------------------------------------

    def fileno(self) -> int:
        return int(self._pgconn.socket)

    def start_commit(self, records: Sequence[CallRecord]) -> bool:
        self._send(_document(records))
        return self.flush()

    def flush(self) -> bool:
        return not self._pgconn.flush()

    def poll_commit(self) -> bool:
        from psycopg import errors

        self._pgconn.consume_input()
        if not self._is_under_way:
            return False
        while not self._pgconn.is_busy():
            result = self._pgconn.get_result()
            if result is None:
                self._is_under_way = False
                try:
                    for result in self._results:
                        _check_result(result)
                except errors.InvalidSqlStatementName:
                    self._stop_preparing()
                    raise
                return True
            self._results.append(result)
        return False

    # ----------------------------------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        from psycopg import errors

        self._begin_query()
        self._pgconn.send_prepare(STATEMENT_NAME, _COMMAND)
        try:
            self._wait(PROBE_TIMEOUT_S)
        except errors.DuplicatePreparedStatement:
            self._stop_preparing()

    def _stop_preparing(self) -> None:
        # A pooler shares sessions: this process prepares nothing there any more.
        self._uses_prepared = False
        if self._address not in _poolers_found:
            _poolers_found.add(self._address)
            logger.warning("audit.pooler_found", advice="set DATABASE_POOLER=transaction")

    def _send_and_wait(self, document: bytes, timeout_s: float) -> None:
        from psycopg import errors

        self._send(document)
        try:
            self._wait(timeout_s)
        except errors.InvalidSqlStatementName:  # `poll_commit` has switched to the unnamed statement
            self._send(document)
            self._wait(timeout_s)

    def _send(self, document: bytes) -> None:
        self._begin_query()
        if self._uses_prepared:
            self._pgconn.send_query_prepared(STATEMENT_NAME, [document, self._era_start])
        else:
            self._pgconn.send_query_params(_COMMAND, [document, self._era_start])

    def _begin_query(self) -> None:
        self._results = []
        self._is_under_way = True

    def _wait(self, timeout_s: float) -> None:
        """Blocks the thread until the exchange has succeeded. Raises: like `commit`."""
        give_up_at = time.monotonic() + timeout_s
        poll = select.poll()
        while True:
            events = select.POLLIN if self.flush() else select.POLLIN | select.POLLOUT
            poll.register(self._pgconn.socket, events)
            if not poll.poll(max(0.0, give_up_at - time.monotonic()) * 1000):
                raise TimeoutError("the database did not answer in time")
            if self.poll_commit():
                return


def _address(database: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(database.get(key) for key in ("HOST", "PORT", "NAME"))


def _document(records: Sequence[CallRecord]) -> bytes:
    """Raises: RecordRefused."""
    try:
        return msgspec.json.encode(records)
    except REFUSALS as fault:
        raise RecordRefused(type(fault).__name__) from fault


def _check_result(result: pq.abc.PGresult) -> None:
    """Raises: RecordRefused, psycopg.Error."""
    from psycopg import errors, pq

    if result.status == pq.ExecStatus.COMMAND_OK:
        return
    error = errors.error_from_result(result)
    if isinstance(error, errors.DataError | errors.IntegrityError):
        raise RecordRefused(type(error).__name__) from error
    raise error
