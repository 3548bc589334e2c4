"""The exchange of one host without Redis: a SQLite file that its processes open. It may be deleted at any time."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gateway.coordination.exchange import LOG_ENTRIES, MARK_BYTES, MAX_TAKEN, Fields, Table
from gateway.coordination.store import CoordinationUnavailable

_SCHEMA = """
CREATE TABLE IF NOT EXISTS kept (name TEXT PRIMARY KEY, value BLOB NOT NULL, expires_ms INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS message
    (number INTEGER PRIMARY KEY, box TEXT NOT NULL, body BLOB NOT NULL, expires_ms INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS message_box ON message (box, number);
CREATE TABLE IF NOT EXISTS field
    (name TEXT, field BLOB, value BLOB NOT NULL, expires_ms INTEGER NOT NULL, PRIMARY KEY (name, field)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS field_end ON field (name, expires_ms);  -- fields are counted without their values
CREATE TABLE IF NOT EXISTS entry
    (number INTEGER PRIMARY KEY AUTOINCREMENT, log TEXT NOT NULL, body BLOB NOT NULL, expires_ms INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS entry_log ON entry (log, number);
"""
# The fields of all tables with a name between two: those that begin with the first.
_TAKEN = "(SELECT count(*) FROM field WHERE name BETWEEN ? AND ? AND field <> x'' AND expires_ms > ?)"
LOOK_EVERY_S = 0.05
FOLLOW_EVERY_S = 0.25  # for logs, which are read for as long as a stream is open
_LOCK_TIMEOUT_S = 2.0  # to wait for another process's transaction
_SWEEP_EVERY = 100  # writes between deletions of what has expired


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


class SQLiteExchange:
    """Implements Exchange. A statement takes some tens of microseconds, so it runs in the event loop."""

    def __init__(self, path: Path, now_ms: Callable[[], int] = _wall_ms) -> None:
        self._path = path
        self._now_ms = now_ms
        self._connection: sqlite3.Connection | None = None
        self._pid = 0
        self._writes = 0

    async def get(self, name: str) -> bytes | None:
        rows = self._execute("SELECT value FROM kept WHERE name = ? AND expires_ms > ?", name, self._now_ms())
        return rows[0][0] if rows else None

    async def put(self, name: str, value: bytes, ttl_s: int) -> None:
        self._write("INSERT OR REPLACE INTO kept (name, value, expires_ms) VALUES (?, ?, ?)", name, value, ttl_s=ttl_s)

    async def claim(self, name: str, ttl_s: int) -> bool:
        now_ms = self._now_ms()
        found = self._execute(
            "INSERT INTO kept (name, value, expires_ms) VALUES (?, ?, ?) ON CONFLICT (name)"
            " DO UPDATE SET expires_ms = excluded.expires_ms WHERE kept.expires_ms <= ? RETURNING 1",
            *(name, b"1", now_ms + ttl_s * 1000, now_ms),
        )
        self._sweep(now_ms)
        return bool(found)

    async def push(self, box: str, message: bytes, ttl_s: int) -> None:
        self._write("INSERT INTO message (box, body, expires_ms) VALUES (?, ?, ?)", box, message, ttl_s=ttl_s)

    async def take(self, box: str, wait_s: float) -> list[bytes]:
        for _ in range(max(1, round(wait_s / LOOK_EVERY_S))):
            if found := self._take(box):
                return found
            await asyncio.sleep(LOOK_EVERY_S)
        return []

    async def set_field(self, table: Table, field: bytes, value: bytes, *, ttl_s: int) -> str:
        now_ms = self._now_ms()
        bounds = [(table.name, table.name, table.most), *((name, f"{name}\uffff", most) for name, most in table.shares)]
        # One statement: of two processes only one may take the last place.
        has_room = " AND ".join([f"{_TAKEN} < ?"] * len(bounds))
        found = self._execute(
            "INSERT INTO field (name, field, value, expires_ms) SELECT ?, ?, ?, ?"  # noqa: S608 (constants)
            f" WHERE EXISTS (SELECT 1 FROM field WHERE name = ? AND field = ? AND expires_ms > ?) OR ({has_room})"
            " ON CONFLICT (name, field) DO UPDATE SET value = excluded.value, expires_ms = excluded.expires_ms"
            " RETURNING 1",
            *(table.name, field, value, now_ms + ttl_s * 1000),
            *(table.name, field, now_ms),
            *(each for first, last, most in bounds for each in (first, last, now_ms, most)),
        )
        self._sweep(now_ms)
        if found:
            self._keep_fields(table.name, ttl_s, now_ms)
            self._mark(table.name, ttl_s, now_ms)
            return ""
        taken = [self._execute(f"SELECT {_TAKEN}", first, last, now_ms)[0][0] for first, last, _ in bounds]
        full = (name for count, (name, _, most) in zip(taken, bounds, strict=True) if count >= most)
        return next(full, table.name)  # a place has become free meanwhile

    async def remove_field(self, table: Table, field: bytes) -> None:
        self._execute("DELETE FROM field WHERE name = ? AND field = ?", table.name, field)

    async def fields(self, table: Table, *, ttl_s: int) -> Fields:
        now_ms = self._now_ms()
        rows = self._execute("SELECT field, value FROM field WHERE name = ? AND expires_ms > ?", table.name, now_ms)
        values = dict(rows)
        mark = values.pop(b"", b"")
        if values:
            self._keep_fields(table.name, ttl_s, now_ms)
        return Fields(mark, values)

    async def drop(self, table: Table) -> None:
        self._execute("DELETE FROM field WHERE name = ?", table.name)

    async def append(self, log: str, entry: bytes, ttl_s: int) -> None:
        self._write("INSERT INTO entry (log, body, expires_ms) VALUES (?, ?, ?)", log, entry, ttl_s=ttl_s)

    async def end_of(self, log: str) -> str:
        [(last,)] = self._execute("SELECT max(number) FROM entry WHERE log = ?", log)
        return str(last or 0)

    async def read_after(self, log: str, place: str, wait_s: float) -> tuple[str, list[bytes]]:
        for _ in range(max(1, round(wait_s / FOLLOW_EVERY_S))):
            rows = self._execute(
                "SELECT number, body FROM entry WHERE log = ? AND number > ? ORDER BY number LIMIT ?",
                *(log, int(place), MAX_TAKEN),
            )
            if rows:
                return str(rows[-1][0]), [body for _, body in rows]
            await asyncio.sleep(FOLLOW_EVERY_S)
        return place, []

    def close(self) -> None:
        if self._connection is not None and self._pid == os.getpid():
            self._connection.close()
        self._connection = None

    def _take(self, box: str) -> list[bytes]:
        if not self._execute("SELECT 1 FROM message WHERE box = ? LIMIT 1", box):
            return []  # the usual case takes no write lock
        rows = self._execute(
            "DELETE FROM message WHERE number IN (SELECT number FROM message WHERE box = ? ORDER BY number LIMIT ?)"
            " RETURNING number, body, expires_ms",
            *(box, MAX_TAKEN),
        )
        return [body for _, body, expires_ms in sorted(rows) if expires_ms > self._now_ms()]

    def _mark(self, name: str, ttl_s: int, now_ms: int) -> None:
        """Unless the table has one."""
        self._execute(
            "INSERT INTO field (name, field, value, expires_ms) VALUES (?, x'', ?, ?) ON CONFLICT (name, field)"
            " DO UPDATE SET value = excluded.value, expires_ms = excluded.expires_ms WHERE field.expires_ms <= ?",
            *(name, os.urandom(MARK_BYTES), now_ms + ttl_s * 1000, now_ms),
        )

    def _keep_fields(self, name: str, ttl_s: int, now_ms: int) -> None:
        sql = "UPDATE field SET expires_ms = ? WHERE name = ? AND expires_ms > ?"
        self._execute(sql, now_ms + ttl_s * 1000, name, now_ms)

    def _write(self, sql: str, *values: str | bytes, ttl_s: int) -> None:
        now_ms = self._now_ms()
        self._execute(sql, *values, now_ms + ttl_s * 1000)
        self._sweep(now_ms)

    def _sweep(self, now_ms: int) -> None:
        self._writes += 1
        if self._writes % _SWEEP_EVERY == 0:
            for table in ("kept", "message", "field", "entry"):
                self._execute(f"DELETE FROM {table} WHERE expires_ms <= ?", now_ms)  # noqa: S608
            self._execute("DELETE FROM entry WHERE number <= (SELECT max(number) FROM entry) - ?", LOG_ENTRIES)

    def _execute(self, sql: str, *values: str | bytes | int) -> list[Any]:
        try:
            return self._open().execute(sql, values).fetchall()
        except sqlite3.Error as fault:
            raise CoordinationUnavailable(type(fault).__name__) from fault

    def _open(self) -> sqlite3.Connection:
        if self._connection is None or self._pid != os.getpid():  # SQLite connections must not cross a fork
            self._path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(self._path, timeout=_LOCK_TIMEOUT_S, isolation_level=None)
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=OFF")  # the file need not survive a crash of the host
            connection.executescript(_SCHEMA)
            self._connection, self._pid = connection, os.getpid()
        return self._connection
