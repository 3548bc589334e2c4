"""`migrate` beside transactions that hold the tables it needs."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from gateway.management.commands import migrate

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


def test_another_error_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise migrate.OperationalError("the disk is full")

    monkeypatch.setattr(migrate.migrate.Command, "handle", fail)
    with pytest.raises(migrate.OperationalError, match="disk"):
        call_command("migrate", verbosity=0)
