"""The databases that tests copy from a template, on a server whose sessions end late."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from tests.e2e import deployment_data
from tests.e2e.deployment_data import Template


class Server:
    """Refuses the first statements as PostgreSQL does while another session is in the template."""

    def __init__(self, refusals: int) -> None:
        self.refusals, self.made = refusals, list[str]()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *fault: object) -> None:
        """Nothing is open."""

    def execute(self, statement: bytes) -> None:
        if self.refusals:
            self.refusals -= 1
            raise psycopg.errors.ObjectInUse("source database is being accessed by other users")
        self.made.append(statement.decode())


def created(monkeypatch: pytest.MonkeyPatch, server: Server) -> str:
    def connect(*args: Any, **options: Any) -> Server:
        return server

    monkeypatch.setattr(psycopg, "connect", connect)
    template = Template.__new__(Template)
    template._server_url = "postgres://postgres@127.0.0.1:5432/postgres"
    return template._create("the_template")


def test_a_copy_waits_for_sessions_that_are_still_in_the_template(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(refusals=2)
    name = created(monkeypatch, server).rpartition("/")[2]
    assert server.made == [f'CREATE DATABASE "{name}" TEMPLATE "the_template"']


def test_a_session_that_never_ends_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deployment_data, "PREPARATION_DEADLINE_S", 0.0)
    with pytest.raises(psycopg.errors.ObjectInUse):
        created(monkeypatch, Server(refusals=10_000))
