"""Counts what is asked of the database: over Django's cursors, and on the event loop."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
from django.db.backends.utils import CursorWrapper

from gateway.lib.json_statement import JsonStatement
from gateway.lib.loop_reader import ReadingConnection


@contextlib.contextmanager
def statements() -> Iterator[list[str]]:
    """Every statement inside the block, of any thread: its SQL, or the name of one that the event loop sends."""
    seen: list[str] = []
    execute, ask = CursorWrapper.execute, ReadingConnection.ask

    def executed(cursor: CursorWrapper, sql: str, params: Any = None) -> Any:
        seen.append(sql)
        return execute(cursor, sql, params)

    def asked(connection: ReadingConnection, statement: JsonStatement, value: bytes) -> None:
        seen.append(statement.name.decode())
        ask(connection, statement, value)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CursorWrapper, "execute", executed)
        patch.setattr(ReadingConnection, "ask", asked)
        yield seen
