"""PostgreSQL behind PgBouncer, and with a synchronous standby, as real servers of a test's own."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.own_back_ends import on_back_ends
from tests.factories.until import until_true
from tests.fakes import pgbouncer
from tests.fakes.postgresql_server import PostgreSQLServer, binaries, postgresql_server
from tests.vendors.processes import free_port

PROGRAMS = binaries()
pytestmark = [
    pytest.mark.one_back_end,
    pytest.mark.skipif(PROGRAMS is None, reason="needs PostgreSQL's programs in /usr/lib/postgresql"),
]
ROWS = "SELECT count(*) FROM audit_requestauditentry WHERE status = 'success'"


@pytest.fixture(autouse=True)
def _no_redis(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REDIS_URL", raising=False)


@pytest.fixture
def server() -> Iterator[PostgreSQLServer]:
    assert PROGRAMS is not None
    with postgresql_server(PROGRAMS) as server:
        yield server


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that the user of PostgreSQL can read."""
    with tempfile.TemporaryDirectory(prefix="variants-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.skipif(not pgbouncer.is_installed(), reason="needs pgbouncer")
def test_pgbouncer_in_transaction_mode(server: PostgreSQLServer, folder: Path) -> None:
    server.ask("ALTER ROLE postgres SET statement_timeout = '15s'")
    with (
        pgbouncer.pgbouncer(folder / "pgbouncer", server) as pooler,
        on_back_ends(
            folder / "run", server.url, {"DATABASE_POOLER": "transaction"}, pooler_port=pooler.port
        ) as installed,
    ):
        assert installed.doctor()["pooler"] == [("ok", "PgBouncer in transaction mode.")]
        [(status, said)] = installed.doctor(DATABASE_POOLER="none")["database"]
        assert status == "error"
        assert "set DATABASE_POOLER=transaction" in said
        installed.made.manage("migrate", "--no-input")
        with installed.made.web() as web:
            assert installed.calls(web, 30) == {200: 30}
            assert installed.made.database.select(ROWS) == [(30,)]
            pooler.kill()
            assert installed.call(web) == 503, "no call without its row"
            pooler.start()
            until_true(lambda: installed.call(web) == 200)


def test_a_synchronous_standby_is_killed_and_comes_back(server: PostgreSQLServer, folder: Path) -> None:
    with (
        standby_of(server) as standby,
        on_back_ends(folder / "run", server.url) as installed,
        synchronous(server),
    ):
        until_true(lambda: server.ask("SELECT sync_state FROM pg_stat_replication") == [("sync",)])
        name = installed.made.database.name
        assert installed.doctor()["durability"] == [
            ("ok", "An acknowledged call is on two disks: a synchronous standby has it.")
        ]
        with installed.made.web() as web:
            assert installed.calls(web, 10) == {200: 10}
            standby.kill()
            until_true(lambda: installed.call(web) == 503)
            [(status, said)] = installed.doctor()["durability"]
            assert (status, "none is connected" in said) == ("warning", True)
            standby.start()
            until_true(lambda: installed.call(web) == 200)
            answered = 11 + installed.calls(web, 10)[200]
        server.kill()
        standby.ask("SELECT pg_promote()")
        [(found,)] = standby.ask(ROWS, database=name)
        assert found >= answered, "the standby has every call that was answered"


@contextlib.contextmanager
def synchronous(server: PostgreSQLServer) -> Iterator[None]:
    """Commits wait for the standby inside the block; afterwards the server runs and waits for nobody."""
    server.ask("ALTER SYSTEM SET synchronous_standby_names = 'standby'", "SELECT pg_reload_conf()")
    try:
        yield
    finally:
        if server.is_down:
            server.start()
        server.ask("ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")


@contextlib.contextmanager
def standby_of(primary: PostgreSQLServer) -> Iterator[PostgreSQLServer]:
    with tempfile.TemporaryDirectory(prefix="standby-") as folder:
        standby = PostgreSQLServer(free_port(), Path(folder), primary.programs)
        standby.copy_of(primary)
        try:
            standby.start()
            yield standby
        finally:
            standby.end()
