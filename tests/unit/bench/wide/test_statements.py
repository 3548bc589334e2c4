"""Statements counted from the bytes of PostgreSQL's protocol."""

from __future__ import annotations

import pytest

from bench.wide.statements import (
    CHECK,
    COMPARED,
    StatementCounts,
    StatementReader,
    Uses,
    named,
    of_calls,
    shortened,
)

START_UP = (8 + 5).to_bytes(4, "big") + (196608).to_bytes(4, "big") + b"user\0"


def message(kind: bytes, body: bytes) -> bytes:
    return kind + (len(body) + 4).to_bytes(4, "big") + body


def prepared(name: bytes, sql: bytes) -> bytes:
    return message(b"P", name + b"\0" + sql + b"\0" + b"\0\0")


def run(name: bytes) -> bytes:
    return message(b"B", b"\0" + name + b"\0" + b"\0" * 6) + message(b"E", b"\0" + b"\0" * 4) + message(b"S", b"")


def test_simple_queries_and_executions_count_and_preparing_does_not() -> None:
    reader = StatementReader()
    assert reader.feed(START_UP + prepared(b"one", b"SELECT 1")) == []
    assert reader.feed(run(b"one") + run(b"one") + message(b"Q", b"BEGIN\0")) == ["SELECT 1", "SELECT 1", "BEGIN"]


def test_parts_of_any_size_give_the_same_statements() -> None:
    sent = START_UP + prepared(b"", b"SELECT\n  2") + run(b"") + message(b"Q", b"COMMIT\0")
    reader = StatementReader()
    assert [sql for at in range(len(sent)) for sql in reader.feed(sent[at : at + 1])] == ["SELECT\n  2", "COMMIT"]


def test_a_statement_that_was_not_prepared_here_has_no_text() -> None:
    reader = StatementReader()
    assert reader.feed(START_UP + run(b"elsewhere")) == [""]


def test_names_are_short_and_of_one_line() -> None:
    assert shortened("SELECT a,\n       b") == "SELECT a, b"
    assert len(shortened("x" * 500)) == 60


def test_a_connection_outside_the_pool_counts_at_once() -> None:
    assert Uses().add(["SELECT 1", "SELECT 2"]) == ["SELECT 1", "SELECT 2"]


def test_a_use_counts_when_the_next_one_begins() -> None:
    uses = Uses()
    assert uses.add([CHECK, "UPDATE a"]) == []
    assert uses.add(["COMMIT", CHECK]) == [CHECK, "UPDATE a", "COMMIT"]


@pytest.mark.parametrize(
    ("use", "names"),
    [
        ([CHECK, 'SELECT "coordination_pendingbump"."id"'], []),
        ([CHECK, "BEGIN", 'SELECT 1 FROM "orgs_toollook"', "COMMIT"], [COMPARED] * 4),
        ([CHECK, 'SELECT "orgs_organization"."id"'], [CHECK, 'SELECT "orgs_organization"."id"']),
    ],
)
def test_what_a_process_does_behind_its_calls_is_told_apart(use: list[str], names: list[str]) -> None:
    assert named(use) == names


def test_the_commit_of_call_records_is_not_counted() -> None:
    assert of_calls({"INSERT INTO audit_requestauditentry (id": 5, COMPARED: 17, "SELECT 1": 2, CHECK: 1}) == 3


def test_counts_begin_anew_once_taken() -> None:
    counts = StatementCounts()
    counts.add(["a", "b", "a"])
    assert counts.take() == {"a": 2, "b": 1}
    assert counts.take() == {}
