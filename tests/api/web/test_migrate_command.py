"""`migrate` beside transactions that hold the tables it needs."""

from __future__ import annotations

import io
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection
from django.db.migrations.recorder import MigrationRecorder

from gateway.lib import clock
from gateway.lib.bounded_connection import BoundedWrapper
from gateway.lib.unpooled_connection import unpooled
from gateway.management import migration_lock
from gateway.management.commands import migrate
from gateway.management.migration_lock import WAITING, only_one
from tests.factories.until import until_true

ROOT = Path(__file__).resolve().parents[3]
pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "postgresql", reason="a file has no locks of tables"),
]
LAST = ("orgs", "0015_browser_sessions")  # its table refers to people


@pytest.fixture
def reader() -> Iterator[psycopg.Connection[Any]]:
    """A transaction that keeps the people as they are, while the last migration is not applied."""
    call_command("migrate", "orgs", "0014", verbosity=0)
    parameters = connection.get_connection_params()
    for name in ("pool", "cursor_factory", "context", "prepare_threshold"):
        parameters.pop(name, None)
    with psycopg.connect(**parameters) as reader:
        reader.execute("LOCK TABLE orgs_user IN SHARE MODE")
        yield reader
    call_command("migrate", verbosity=0)


def url_of_the_test_database() -> str:
    entry = connection.settings_dict
    password = f":{quote(entry['PASSWORD'], safe='')}" if entry["PASSWORD"] else ""
    return f"postgres://{entry['USER']}{password}@{entry['HOST']}:{entry['PORT'] or 5432}/{entry['NAME']}"


def is_applied() -> bool:
    return LAST in MigrationRecorder(connection).applied_migrations()


def test_a_table_in_use_is_tried_again(reader: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        assert not is_applied()
        if len(pauses) == 2:
            reader.rollback()

    monkeypatch.setattr(migrate, "LOCK_TIMEOUT_S", 0.1)
    monkeypatch.setattr(migrate, "pause", pause)
    said = io.StringIO()
    call_command("migrate", verbosity=0, stderr=said)
    assert is_applied()
    assert said.getvalue().count("trying again") == len(pauses) == 2


def test_a_table_that_is_never_free_ends_the_command(
    reader: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrate, "LOCK_TIMEOUT_S", 0.1)
    monkeypatch.setattr(migrate, "LOCK_ATTEMPTS", 3)
    monkeypatch.setattr(migrate, "pause", lambda seconds: None)
    with pytest.raises(CommandError, match="at each of 3 attempts"):
        call_command("migrate", verbosity=0, stderr=io.StringIO())
    assert not is_applied()


def test_a_second_one_waits_for_the_first_and_says_so(
    reader: psycopg.Connection[Any], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The first process waits for the reader with the lock in its hand; the second one does not touch the tables."""

    def started(name: str) -> subprocess.Popen[bytes]:
        with (tmp_path / name).open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "manage.py", "migrate", "--no-input", "--verbosity=0"],
                cwd=ROOT,
                env={
                    **os.environ,
                    "DATABASE_URL": url_of_the_test_database(),
                    "DJANGO_SETTINGS_MODULE": "tests.settings",
                },
                stdout=log,
                stderr=log,
            )
        request.addfinalizer(process.kill)
        return process

    def said(name: str) -> str:
        return (tmp_path / name).read_text()

    first = started("first")
    until_true(lambda: "A table was in use" in said("first"))
    second = started("second")
    until_true(lambda: WAITING in said("second"))
    reader.rollback()
    assert (first.wait(120), second.wait(120)) == (0, 0), said("first") + said("second")
    assert is_applied()
    assert WAITING not in said("first")
    assert said("second").count(WAITING) == 1
    assert "A table was in use" not in said("second")


def test_a_killed_one_leaves_no_lock() -> None:
    said: list[str] = []
    with only_one(connection, said.append):
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pid FROM pg_stat_activity"
                " WHERE application_name LIKE 'gateway-migrate-lock %' AND datname = current_database()"
            )
            (pid,) = cursor.fetchone()
            cursor.execute("SELECT pg_terminate_backend(%s)", [pid])
        with only_one(connection, said.append):
            pass
    assert [line.startswith(WAITING) for line in said] in ([], [True])


def test_who_waits_says_for_whom_and_since_when(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        if len(said) == 2:
            release.set()

    release, taken = threading.Event(), threading.Event()

    def hold() -> None:
        with closing(connection.copy()) as own, only_one(own, str):
            taken.set()
            assert release.wait(60)

    monkeypatch.setattr(migration_lock, "LOOK_EVERY_S", 0.02)
    monkeypatch.setattr(migration_lock, "SAY_EVERY_S", 0.02)
    before = clock.now()
    holder = threading.Thread(target=hold)
    holder.start()
    assert taken.wait(60)
    with only_one(connection, say):
        holder.join()
    match = re.match(
        rf"{WAITING}, process (\d+) on (\S+)( \(\S+\))?, since (\S+), in the database’s session \d+;", said[0]
    )
    assert match, said[0]
    assert (int(match[1]), match[2]) == (os.getpid(), socket.gethostname()[:30])
    assert abs((datetime.fromisoformat(match[4]) - before).total_seconds()) < 30
    assert len(said) >= 2, "again, as long as it waits"


def test_the_session_of_a_dead_host_ends_and_that_of_a_long_migrate_does_not() -> None:
    with closing(unpooled(connection, "test", BoundedWrapper)) as own:
        migration_lock._prepare(own)
        with own.cursor() as cursor:
            found = {}
            for name in migration_lock._SESSION:
                cursor.execute(f"SHOW {name}")
                found[name] = cursor.fetchone()[0]
    is_local = not connection.settings_dict["HOST"] or connection.settings_dict["HOST"].startswith("/")
    assert found["idle_session_timeout"] == "0"
    assert found["tcp_keepalives_idle"] == ("0" if is_local else "10")


def test_a_server_that_does_not_answer_ends_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BoundedWrapper, "response_timeout_s", 0.3)
    monkeypatch.setattr(migration_lock, "_HOLDER", "SELECT pg_sleep(60), %s, %s, 1")
    with (
        closing(connection.copy()) as first,
        only_one(first, str),
        pytest.raises(OperationalError, match="did not answer in time"),
        only_one(connection, str),
    ):
        pytest.fail("two have the lock")


def test_what_changes_nothing_waits_for_nothing() -> None:
    with only_one(connection, str):
        call_command("migrate", plan=True, verbosity=0, stdout=io.StringIO())


def test_another_error_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise migrate.OperationalError("the disk is full")

    monkeypatch.setattr(migrate.migrate.Command, "handle", fail)
    with pytest.raises(migrate.OperationalError, match="disk"):
        call_command("migrate", verbosity=0)
