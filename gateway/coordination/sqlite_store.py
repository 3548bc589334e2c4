"""The coordination store of one host without Redis: a SQLite file that all its processes open.

The file may be deleted: counters restart and every cache entry is loaded again.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import TracebackType

import msgspec

from gateway.coordination import window
from gateway.coordination.hash_tags import SESSION
from gateway.coordination.returns import Returns
from gateway.coordination.rules import Rule
from gateway.coordination.store import Admission, CoordinationUnavailable

_SCHEMA = """
CREATE TABLE IF NOT EXISTS rate (key TEXT PRIMARY KEY, state BLOB NOT NULL, expires_ms INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS epoch (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS health
    (vendor TEXT PRIMARY KEY, state BLOB NOT NULL, expires_ms INTEGER NOT NULL) WITHOUT ROWID;
"""
_pack = msgspec.msgpack.Encoder().encode
_Admitted = tuple[window.Decision, tuple[str, ...]]
_LOCK_TIMEOUT_S = 2.0  # to wait for another process's transaction
# Names made by `hash_tags.session_epoch`, behind a tag: their time is ten hexadecimal digits.
_SWEEP_SESSIONS = f"""
DELETE FROM epoch WHERE instr(name, '}}{SESSION}') > 0
    AND substr(name, instr(name, '}}{SESSION}') + {len(SESSION) + 1}, 10) < ?
"""  # noqa: S608
_SWEEP_EVERY = 5_000  # admissions between deletions of expired windows


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


class _Statement:
    """`with` gives the connection, under the lock. A generator in its place would cost each call three Python calls.

    Raises: CoordinationUnavailable.
    """

    __slots__ = ("_lock", "_open")

    def __init__(self, lock: threading.Lock, open_connection: Callable[[], sqlite3.Connection]) -> None:
        self._lock, self._open = lock, open_connection

    def __enter__(self) -> sqlite3.Connection:
        self._lock.acquire()
        try:
            return self._open()
        except BaseException as fault:
            self.__exit__(type(fault), fault, None)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()
        if isinstance(fault, sqlite3.Error):
            raise CoordinationUnavailable(type(fault).__name__) from fault


# Apart from the product's database, so that a rate count never waits for a report. A transaction takes some tens of
# microseconds, so the asynchronous methods run in the event loop.
class SQLiteStore:
    def __init__(self, path: Path, new_value: Callable[[], str], now_ms: Callable[[], int] = _wall_ms) -> None:
        self._path = path
        self._new_value = new_value
        self._now_ms = now_ms
        self._lock = threading.Lock()
        self._statement = _Statement(self._lock, self._open)
        self.returns = Returns()  # none: the file is never replaced by an older one
        self._connection: sqlite3.Connection | None = None
        self._pid = 0
        self._writes = 0
        self._request: tuple[Rule, int, int]
        self._decision: window.Decision

    async def admit(self, rule: Rule, key: str, epochs: Sequence[str]) -> Admission:
        with self._statement as connection:
            decision, values = self._acquire(connection, rule, key, epochs)
            return Admission.of(rule, decision, values)

    async def charge(self, rule: Rule, key: str, units: int) -> Admission:
        with self._statement as connection:
            decision, values = self._acquire(connection, rule, key, (), units)
            return Admission.of(rule, decision, values)

    def hit(self, rule: Rule, key: str) -> Admission:
        with self._statement as connection:
            decision, _ = self._acquire(connection, rule, key, ())
            return Admission.of(rule, decision, epochs=None)

    def peek(self, rule: Rule, key: str) -> Admission:
        with self._statement as connection:
            row = connection.execute("SELECT state FROM rate WHERE key = ?", (f"{rule.name}:{key}",)).fetchone()
        state = _load(rule, row[0]) if row and row[0] else window.new_state(rule)
        return Admission.of(rule, window.peek(state, rule, self._now_ms()), epochs=None)

    async def read_epochs(self, names: Sequence[str]) -> tuple[str, ...] | None:
        with self._statement as connection:
            return self._epochs(connection, names)

    async def begin_epochs(self, names: Sequence[str]) -> tuple[str, ...] | None:
        with self._transaction() as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO epoch (name, value) VALUES (?, ?)", [(name, self._new_value()) for name in names]
            )
            return self._epochs(connection, names)

    async def renew_epoch(self, name: str) -> None:
        with self._statement as connection:
            connection.execute("UPDATE epoch SET value = ? WHERE name = ?", (self._new_value(), name))

    def bump_epochs(self, names: Sequence[str]) -> None:
        with self._transaction() as connection:
            connection.executemany(
                "INSERT INTO epoch (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                [(name, self._new_value()) for name in names],
            )

    def put_health(self, vendor: str, state: bytes, ttl_s: int) -> None:
        with self._transaction() as connection:
            connection.execute(
                "INSERT INTO health (vendor, state, expires_ms) VALUES (?, ?, ?)"
                " ON CONFLICT (vendor) DO UPDATE SET state = excluded.state, expires_ms = excluded.expires_ms",
                (vendor, state, self._now_ms() + ttl_s * 1000),
            )

    def health(self, vendors: Sequence[str]) -> Mapping[str, bytes]:
        with self._transaction() as connection:
            rows = connection.execute("SELECT vendor, state FROM health WHERE expires_ms > ?", (self._now_ms(),))
            wanted = set(vendors)
            return {vendor: state for vendor, state in rows if vendor in wanted}

    def ping(self) -> None:
        with self._transaction() as connection:
            connection.execute("SELECT 1")

    async def aclose(self) -> None:
        with self._lock:
            if self._connection is not None and self._pid == os.getpid():
                self._connection.close()
            self._connection = None

    def _acquire(
        self, connection: sqlite3.Connection, rule: Rule, key: str, epochs: Sequence[str], units: int = 1
    ) -> _Admitted:
        """Count and read the epochs in one statement, a transaction of its own."""
        # The UPDATE locks the file before it reads the window, so that no other process changes it in between.
        name, now_ms = f"{rule.name}:{key}", self._now_ms()
        self._request = (rule, now_ms, units)
        sql, values = _admit_sql(len(epochs)), (name, now_ms + 2 * rule.window_s * 1000, *epochs)
        rows = connection.execute(sql, values).fetchall()
        if not rows:  # the first admission of this key
            connection.execute("INSERT OR IGNORE INTO rate (key, state, expires_ms) VALUES (?, x'', ?)", values[:2])
            rows = connection.execute(sql, values).fetchall()
        self._writes += 1
        if self._writes % _SWEEP_EVERY == 0:
            connection.execute("DELETE FROM rate WHERE expires_ms < ?", (now_ms,))
            connection.execute(_SWEEP_SESSIONS, (f"{now_ms // 1000:010x}",))
        return self._decision, rows[0][1:]

    def _count(self, blob: bytes) -> bytes:
        """SQL function: the window's old state in, its new state out. The answer goes to `_decision`."""
        rule, now_ms, units = self._request
        state = _load(rule, blob) if blob else window.new_state(rule)
        self._decision = window.acquire(state, rule, now_ms, units)
        return _pack(state)

    @staticmethod
    def _epochs(connection: sqlite3.Connection, names: Sequence[str]) -> tuple[str, ...]:
        placeholders = ",".join("?" * len(names))
        rows = dict(connection.execute(f"SELECT name, value FROM epoch WHERE name IN ({placeholders})", tuple(names)))  # noqa: S608
        return tuple(rows.get(name, "") for name in names)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                connection = self._open()
                connection.execute("BEGIN IMMEDIATE")
                try:
                    yield connection
                except BaseException:
                    connection.execute("ROLLBACK")
                    raise
                connection.execute("COMMIT")
            except sqlite3.Error as fault:
                raise CoordinationUnavailable(type(fault).__name__) from fault

    def _open(self) -> sqlite3.Connection:
        if self._connection is None or self._pid != os.getpid():  # SQLite connections must not cross a fork
            self._path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(
                self._path, timeout=_LOCK_TIMEOUT_S, isolation_level=None, check_same_thread=False
            )
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=OFF")  # the file need not survive a crash of the host
            connection.executescript(_SCHEMA)
            connection.create_function("count_one", 1, self._count)
            self._connection, self._pid = connection, os.getpid()
        return self._connection


@cache
def _admit_sql(epochs: int) -> str:
    # `count_one` runs under the write lock, so processes count one after the other. An epoch never bumped reads as "".
    one = ", coalesce((SELECT value FROM epoch WHERE name = ?{}), '')"
    values = "".join(map(one.format, range(3, 3 + epochs)))
    return f"UPDATE rate SET state = count_one(state), expires_ms = ?2 WHERE key = ?1 RETURNING 1{values}"  # noqa: S608


def _load(rule: Rule, blob: bytes) -> window.State:
    try:
        if rule.keeps_log:
            return msgspec.msgpack.decode(blob, type=window.LogState)
        return msgspec.msgpack.decode(blob, type=window.RingState)
    except msgspec.ValidationError:  # a changed limit uses the other kind of window now
        return window.new_state(rule)
