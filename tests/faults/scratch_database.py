"""A database of its own for one module of fault tests, so that killing, locking or filling it harms no others."""

from __future__ import annotations

import os
import sqlite3
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import psycopg
from django.conf import settings
from django.db.utils import ConnectionHandler

from tests.e2e.deployment_data import Database, Template

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


# Makes one: its back end, one of BACKENDS, and a folder of its own.
NewScratch = Callable[[str, Path], AbstractContextManager[ScratchDatabase]]


class AuditTemplate(Template):
    """A database with the tables of `audit` and of keys, from which scratch databases are copied."""

    _name = "audit"

    def __init__(self, backend: str, folder: Path) -> None:
        super().__init__(folder, _server_url() if backend == "postgresql" else "")

    def _migrate(self, database: Database) -> None:
        for app in ("audit", "keys"):
            self._run("manage.py", "migrate", app, "--skip-checks", "--verbosity=0", database=database)


@contextmanager
def scratch_database(template: AuditTemplate, folder: Path) -> Iterator[ScratchDatabase]:
    """A new database; a server's is gone afterwards."""
    with template.copied(folder) as copy:
        if copy.is_sqlite:
            config = {
                "ENGINE": "django.db.backends.sqlite3",
                "NAME": str(copy.path),
                "OPTIONS": {"init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"},
            }
        else:
            config = {**settings.DATABASES["default"], "NAME": copy.name}
        yield ScratchDatabase(copy.url, ConnectionHandler({"default": config}).settings["default"])


@contextmanager
def scratch_of_a_report(backend: str) -> Iterator[ScratchDatabase]:
    """One for a program that runs by itself."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        template = AuditTemplate(backend, folder)
        try:
            with scratch_database(template, folder) as database:
                yield database
        finally:
            template.remove()


def _server_url() -> str:
    server = settings.DATABASES["default"]
    login = server["USER"] + (f":{server['PASSWORD']}" if server["PASSWORD"] else "")
    return f"postgres://{login}@{server['HOST']}:{server['PORT'] or 5432}/postgres"
