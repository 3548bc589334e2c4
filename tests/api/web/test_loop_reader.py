"""Reads on the event loop: in order, asked again over a lost connection, given up when the server is silent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest
from django.db import connection
from psycopg import errors

from gateway.lib.json_statement import JsonStatement
from gateway.lib.loop_reader import LoopReader, LostConnection, ReadingConnection, open_reading_connection
from gateway.lib.session_timeouts import HAS_POOLER, SessionTimeouts
from tests.fakes.silent_relay import relay_to

pytestmark = pytest.mark.django_db(transaction=True)
SHORT = SessionTimeouts(statement_s=1, lock_s=1, idle_in_transaction_s=1)
ECHO = JsonStatement("echo", lambda sql: f"SELECT {sql.text(sql.array('%s::text'))} WHERE '' <> %s::text")
SLEEP = JsonStatement("sleep", lambda sql: "SELECT pg_sleep(%s::text::float)::text")
OWN_PROCESS = JsonStatement("own_process", lambda sql: "SELECT pg_backend_pid()::text WHERE %s::text <> ''")
STATEMENTS = (ECHO, SLEEP, OWN_PROCESS)


@pytest.fixture(autouse=True)
def _on_postgresql() -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite is read in threads")


def opened(**changes: object) -> ReadingConnection:
    return open_reading_connection({**connection.settings_dict, **changes}, SHORT, STATEMENTS)


@pytest.fixture
async def reader() -> AsyncIterator[LoopReader]:
    made = LoopReader(opened, answer_s=SHORT.response_timeout_s)
    yield made
    await made.aclose()


async def end_session(reader: LoopReader) -> None:
    pid = await reader.read(OWN_PROCESS, "x")
    assert pid is not None

    def terminate() -> None:
        with psycopg.connect(_address()) as other:
            other.execute("SELECT pg_terminate_backend(%s)", [int(pid)])

    await asyncio.to_thread(terminate)


def _address() -> str:
    entry = connection.settings_dict
    return psycopg.conninfo.make_conninfo(
        host=entry["HOST"], port=entry["PORT"] or None, user=entry["USER"], dbname=entry["NAME"]
    )


async def test_each_caller_gets_its_own_answer(reader: LoopReader) -> None:
    asked = [str(number) for number in range(50)]
    answers = await asyncio.gather(*(reader.read(ECHO, value) for value in asked))
    assert answers == [b'["%s"]' % value.encode() for value in asked]
    assert await reader.read(ECHO, "") is None


async def test_a_caller_that_left_gets_no_other_callers_answer(reader: LoopReader) -> None:
    slow = asyncio.ensure_future(reader.read(SLEEP, "0.2"))
    left = asyncio.ensure_future(reader.read(ECHO, "left"))
    late = asyncio.ensure_future(reader.read(ECHO, "late"))
    await reader.read(ECHO, "first")
    left.cancel()
    assert await late == b'["late"]'
    assert await slow == b""
    slow = asyncio.ensure_future(reader.read(SLEEP, "0.2"))
    late = asyncio.ensure_future(reader.read(ECHO, "late"))
    await asyncio.sleep(0)
    slow.cancel()
    assert await late == b'["late"]'


async def test_a_statement_that_fails_leaves_the_connection_as_it_was(reader: LoopReader) -> None:
    pid = await reader.read(OWN_PROCESS, "x")
    with pytest.raises(errors.InvalidTextRepresentation):
        await reader.read(SLEEP, "no number")
    with pytest.raises(errors.QueryCanceled):
        await reader.read(SLEEP, "1.1")
    assert await reader.read(OWN_PROCESS, "x") == pid


async def test_a_connection_that_was_lost_while_idle_is_replaced(reader: LoopReader) -> None:
    await end_session(reader)
    assert await reader.read(ECHO, "again") == b'["again"]'


async def test_a_connection_that_is_lost_under_way_is_replaced(reader: LoopReader) -> None:
    await reader.read(ECHO, "known")
    slow = asyncio.ensure_future(reader.read(SLEEP, "0.9"))
    waiting = asyncio.ensure_future(reader.read(ECHO, "waiting"))
    await asyncio.sleep(0)
    assert reader._connection is not None
    pid = reader._connection._pgconn.backend_pid
    with psycopg.connect(_address()) as other:
        other.execute("SELECT pg_terminate_backend(%s)", [pid])
    assert await slow == b"", "it only reads, so it was asked again"
    assert await waiting == b'["waiting"]'


async def test_a_new_connection_that_is_lost_is_a_fault(reader: LoopReader, monkeypatch: pytest.MonkeyPatch) -> None:
    def is_lost(*_: object) -> None:
        raise psycopg.OperationalError

    monkeypatch.setattr(ReadingConnection, "ask", is_lost)
    with pytest.raises(LostConnection):
        await reader.read(ECHO, "x")


async def test_a_silent_server_is_given_up() -> None:
    entry = connection.settings_dict
    with relay_to(entry["HOST"], int(entry["PORT"] or 5432)) as relay:
        reader = LoopReader(lambda: opened(HOST="127.0.0.1", PORT=relay.port), answer_s=0.3)
        try:
            assert await reader.read(ECHO, "before") == b'["before"]'
            with relay.silent():
                asked = asyncio.ensure_future(reader.read(ECHO, "silent"))
                with pytest.raises(TimeoutError):
                    await asked
            assert await reader.read(ECHO, "after") == b'["after"]'
        finally:
            await reader.aclose()


async def test_nothing_is_prepared_behind_a_pooler() -> None:
    reader = LoopReader(lambda: opened(**{HAS_POOLER: True}), answer_s=1.0)
    try:
        assert await reader.read(ECHO, "x") == b'["x"]'
        assert reader._connection is not None
        assert not reader._connection._prepares
    finally:
        await reader.aclose()


async def test_a_session_without_our_statements_is_a_poolers(reader: LoopReader) -> None:
    await reader.read(ECHO, "x")
    assert reader._connection is not None
    reader._connection._pgconn.exec_(b"DEALLOCATE ALL")
    assert await reader.read(ECHO, "y") == b'["y"]'
    assert not reader._connection._prepares
