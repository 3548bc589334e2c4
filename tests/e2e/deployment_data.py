"""The data of one deployment, all its own: a database made from a migrated template, and its keys in the store.

The back ends are those of this run: SQLite and a file, or what DATABASE_URL and REDIS_URL name.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import redis

from tests.vendors.processes import PASSED_ON, ROOT

PREPARATION_DEADLINE_S = 300.0
_SQLITE = "sqlite:///"
# Only the template is made with these: a deployment has secrets of its own.
_THROW_AWAY = {
    "GATEWAY_MODE": "embedded",
    "DJANGO_SETTINGS_MODULE": "gateway.settings",
    "SECRET_KEY": "for a template without a row: 0123456789abcdef",
    "CREDENTIAL_KEYS": "template:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
}


@dataclass(frozen=True)
class Database:
    """A database that belongs to one test; `url` is what the service gets as DATABASE_URL."""

    url: str

    @property
    def is_sqlite(self) -> bool:
        """Whether it is a file."""
        return self.url.startswith(_SQLITE)

    @property
    def path(self) -> Path:
        """The file of a SQLite database."""
        return Path(self.url.removeprefix(_SQLITE))

    @property
    def name(self) -> str:
        """The name of a PostgreSQL database."""
        return urlsplit(self.url).path.lstrip("/")

    def select(self, sql: str) -> list[tuple[Any, ...]]:
        """All rows of one query, read by a connection of our own."""
        if self.is_sqlite:
            with contextlib.closing(sqlite3.connect(self.path, timeout=20)) as file:
                return file.execute(sql).fetchall()
        with psycopg.connect(self.url) as connection:
            return connection.execute(sql.encode()).fetchall()

    def tables(self) -> list[str]:
        """The name of every table."""
        if self.is_sqlite:
            rows = self.select("SELECT name FROM sqlite_master WHERE type = 'table'")
        else:
            rows = self.select("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        return sorted(str(name) for (name,) in rows)

    def dump(self) -> dict[str, list[tuple[Any, ...]]]:
        """Every row of every table."""
        return {table: self.select(f'SELECT * FROM "{table}"') for table in self.tables()}

    @contextlib.contextmanager
    def out_of_reach(self) -> Iterator[None]:
        """Writes are impossible: another writer holds a SQLite file, PostgreSQL ends its sessions and takes no more."""
        if self.is_sqlite:
            with contextlib.closing(sqlite3.connect(self.path, timeout=20, isolation_level=None)) as holder:
                holder.execute("BEGIN EXCLUSIVE")
                yield
                holder.execute("ROLLBACK")
            return
        with psycopg.connect(_server(self.url), autocommit=True) as server:
            server.execute(f'ALTER DATABASE "{self.name}" WITH ALLOW_CONNECTIONS false'.encode())
            try:
                server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [self.name])
                yield
            finally:
                server.execute(f'ALTER DATABASE "{self.name}" WITH ALLOW_CONNECTIONS true'.encode())


class Template:
    """An empty database with every table, from which others are copied.

    It belongs to all processes that name the same folder: the first of them makes it, and the last one removes it.
    `server_url` names a PostgreSQL server, or nothing for SQLite; this run's own unless given. `code` is the folder of
    the product that makes it.
    """

    _name = "template"

    def __init__(self, folder: Path, server_url: str | None = None, code: Path = ROOT) -> None:
        self._folder, self._code = folder, code
        found = os.environ.get("DATABASE_URL", "") if server_url is None else server_url
        self._server_url = "" if found.startswith(_SQLITE) else found
        # A server writes everything to its disk before a database is gone. The next test need not wait for that.
        self._drops = ThreadPoolExecutor(1)
        self._dropped: list[Future[None]] = []
        with self._known_to_all() as known:
            if not known["users"]:
                known["url"] = self._make().url
            known["users"] += 1
            self.database = Database(known["url"])

    @contextlib.contextmanager
    def _known_to_all(self) -> Iterator[dict[str, Any]]:
        """The file about it for all processes: its `url`, and the number of its `users`. One process at a time."""
        kind = "postgresql" if self._server_url else "sqlite"
        with (self._folder / f"{self._name}.{kind}.json").open("a+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            known = json.loads(file.read() or '{"users": 0}')
            yield known
            file.truncate(0)
            file.write(json.dumps(known))

    @contextlib.contextmanager
    def copied(self, folder: Path) -> Iterator[Database]:
        """A database of its own; PostgreSQL's is dropped afterwards, SQLite's stays with its folder."""
        if self.database.is_sqlite:
            copy = Database(f"{_SQLITE}{folder / 'gateway.sqlite3'}")
            shutil.copyfile(self.database.path, copy.path)
            yield copy
            return
        copy = Database(self._create(self.database.name))
        try:
            yield copy
        finally:
            self._dropped.append(self._drops.submit(self._drop, copy))

    def remove(self) -> None:
        """The copies are gone, and the template once no other process needs it."""
        self._drops.shutdown()
        for dropped in self._dropped:
            dropped.result()
        with self._known_to_all() as known:
            known["users"] -= 1
            if known["users"]:
                return
            if self.database.is_sqlite:
                self.database.path.unlink()
            else:
                self._drop(self.database)

    def _make(self) -> Database:
        if not self._server_url:
            return self._make_file()
        made = Database(self._create())
        try:
            self._migrate(made)
        except BaseException:
            self._drop(made)
            raise
        return made

    def _make_file(self) -> Database:
        made = Database(f"{_SQLITE}{self._folder / f'{self._name}.sqlite3'}")
        self._migrate(made)
        # Pages still in the log beside the file would not be copied with it.
        with contextlib.closing(sqlite3.connect(made.path)) as file:
            file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return made

    def _migrate(self, database: Database) -> None:
        """By the program that prepares a start, so that this way is walked too."""
        self._run("-m", "gateway.supervisor.preparation", database=database)

    def _run(self, *command: str, database: Database) -> None:
        machine = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        subprocess.run(
            [sys.executable, *command],
            cwd=self._code,
            env={**machine, **_THROW_AWAY, "VAR": str(self._folder), "DATABASE_URL": database.url},
            check=True,
            capture_output=True,
            timeout=PREPARATION_DEADLINE_S,
        )

    def _create(self, template: str = "") -> str:
        name = f"gateway_e2e_{uuid.uuid4().hex[:12]}"
        of = f' TEMPLATE "{template}"' if template else ""
        until = time.monotonic() + PREPARATION_DEADLINE_S
        with psycopg.connect(_server(self._server_url), autocommit=True) as server:
            while True:
                try:
                    server.execute(f'CREATE DATABASE "{name}"{of}'.encode())
                    break
                except psycopg.errors.ObjectInUse:
                    # Sessions of the `migrate` before may end late on a loaded machine; the server waits for 5 s alone.
                    if time.monotonic() > until:
                        raise
        return urlsplit(self._server_url)._replace(path=f"/{name}").geturl()

    @staticmethod
    def _drop(database: Database) -> None:
        with psycopg.connect(_server(database.url), autocommit=True) as server:
            server.execute(f'DROP DATABASE IF EXISTS "{database.name}" WITH (FORCE)'.encode())


def _server(url: str) -> str:
    """The address of a database that every server has."""
    return urlsplit(url)._replace(path="/postgres").geturl()


@contextlib.contextmanager
def store_variables() -> Iterator[Mapping[str, str]]:
    """The variables for the store of this run, under keys of its own that are gone at the end.

    Without Redis there is nothing to say: the store is a file in the deployment's folder.
    """
    address = os.environ.get("REDIS_URL")
    if not address:
        yield {}
        return
    prefix = f"gateway-e2e-{uuid.uuid4().hex[:12]}:"
    settings = "tests.e2e.deployment_settings"
    yield {"REDIS_URL": address, "DJANGO_SETTINGS_MODULE": settings, "DEPLOYMENT_PREFIX": prefix}
    with contextlib.closing(redis.Redis.from_url(address)) as client:
        for key in client.scan_iter(f"{prefix}*"):
            client.delete(key)
