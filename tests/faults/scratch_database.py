"""A database of its own for one module of fault tests, so that killing, locking or filling it harms no others."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from django.conf import settings
from django.db.utils import ConnectionHandler

# SQLite always; PostgreSQL too when the suite runs on it. `make test` leaves SQLite to its embedded run then
# (tests/embedded.py).
BACKENDS = ["sqlite"]
if settings.DATABASES["default"]["ENGINE"].endswith("postgresql"):
    BACKENDS.append("postgresql")
ROOT = Path(__file__).resolve().parent.parent.parent


class KeptRow(NamedTuple):
    """A row of the request log. Without a `position` it is not final."""

    org_id: uuid.UUID
    status: str
    duration_ms: int
    position: int | None


@dataclass
class ScratchDatabase:
    """A database with the tables of `audit`. `config` is its entry of DATABASES, `url` its DATABASE_URL."""

    url: str
    config: dict[str, Any]

    @property
    def is_postgresql(self) -> bool:
        """Whether the server, not a file, is behind it."""
        return self.url.startswith("postgres")

    def connect(self) -> Any:
        """A connection that commits every statement at once and begins no transaction by itself."""
        if self.is_postgresql:
            return psycopg.connect(self.url.replace("postgres://", "postgresql://"), autocommit=True)
        return sqlite3.connect(self.config["NAME"], isolation_level=None, timeout=5, check_same_thread=False)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Other connections cannot write meanwhile."""
        with closing(self.connect()) as connection:
            connection.execute("BEGIN" if self.is_postgresql else "BEGIN EXCLUSIVE")
            if self.is_postgresql:
                connection.execute("LOCK TABLE audit_requestauditentry IN ACCESS EXCLUSIVE MODE")
            yield
            connection.execute("ROLLBACK")

    def end_writers_session(self) -> int:
        """The sessions of audit writers that were ended; on SQLite there are none."""
        if not self.is_postgresql:
            return 0
        with closing(self.connect()) as connection:
            ended = connection.execute(
                "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity"
                " WHERE application_name = 'gateway-audit' AND datname = current_database()"
            )
            return int(ended.fetchone()[0])

    def kept(self) -> dict[uuid.UUID, KeptRow]:
        """Every row by its id."""
        with closing(self.connect()) as connection:
            found = connection.execute(
                "SELECT id, org_id, status, duration_ms, position FROM audit_requestauditentry"
            ).fetchall()
        return {uuid.UUID(str(row_id)): KeptRow(uuid.UUID(str(org)), *rest) for row_id, org, *rest in found}

    def environment(self) -> dict[str, str]:
        """For programs that are to use it."""
        return {**os.environ, "DATABASE_URL": self.url, "DJANGO_SETTINGS_MODULE": "gateway.settings"}


@contextmanager
def scratch_database(backend: str, folder: Path) -> Iterator[ScratchDatabase]:
    """A new database, migrated; it is gone afterwards."""
    if backend == "sqlite":
        yield _migrated(
            f"sqlite:///{folder / 'audit.sqlite3'}",
            {
                "ENGINE": "django.db.backends.sqlite3",
                "NAME": str(folder / "audit.sqlite3"),
                "OPTIONS": {"init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"},
            },
        )
        return
    server = settings.DATABASES["default"]
    name = f"gateway_scratch_{os.getpid()}_{uuid.uuid4().hex[:6]}"
    login = server["USER"] + (f":{server['PASSWORD']}" if server["PASSWORD"] else "")
    address = f"{login}@{server['HOST']}:{server['PORT'] or 5432}"
    with psycopg.connect(f"postgresql://{address}/postgres", autocommit=True) as administration:
        administration.execute(f'CREATE DATABASE "{name}"')
        try:
            yield _migrated(f"postgres://{address}/{name}", {**server, "NAME": name})
        finally:
            administration.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def _migrated(url: str, config: dict[str, Any]) -> ScratchDatabase:
    database = ScratchDatabase(url, ConnectionHandler({"default": config}).settings["default"])
    command = [sys.executable, "manage.py", "migrate", "audit", "--skip-checks", "--verbosity=0"]
    subprocess.run(command, cwd=ROOT, env=database.environment(), check=True, timeout=60)
    return database
