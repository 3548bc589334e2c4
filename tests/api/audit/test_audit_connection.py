"""The statements of the audit connection against the suite's real database."""

from __future__ import annotations

import asyncio
import copy
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, cast

import psycopg
import pytest
from django.db import connection
from msgspec.structs import asdict, force_setattr, replace

from audit import postgresql_connection
from audit.audit_connection import AuditConnection, open_audit_connection
from audit.call_record import COLUMNS, MAX_INTEGER, CallRecord
from audit.loop_committer import LoopCommitter
from audit.models import RequestAuditEntry
from audit.postgresql_connection import PostgreSQLAuditConnection
from audit.statement import RecordRefused
from audit.writer import AuditWriter
from gateway.lib.bounded_connection import BoundedWrapper
from gateway.lib.session_timeouts import GIVEN_OPTIONS, HAS_POOLER
from tests.api.audit.rows import ORG, OTHER_ORG, make_record
from tests.fakes.silent_relay import relay_to

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def audit_connection() -> Iterator[AuditConnection]:
    opened = open_audit_connection()
    yield opened
    opened.close()


def stored(record: CallRecord) -> dict[str, object]:
    return RequestAuditEntry.objects.values(*COLUMNS).get(pk=record.id)


def test_a_record_is_stored_as_it_is(audit_connection: AuditConnection) -> None:
    record = make_record(
        error_code="forbidden",
        duration_ms=12,
        vendor_ms=9,
        credential_scope="org",
        credential_name="Łódź \"key' \\",
        cached=True,
        client_id="c" * 255,
        client_name="株式会社 {}",
        ip_address="2001:db8::1",
        request_bytes=MAX_INTEGER,
        response_bytes=1,
        timestamp=datetime(2026, 3, 10, 12, 0, 0, 123456, tzinfo=UTC),
        status="denied",
    )
    audit_connection.commit([record])
    assert stored(record) == asdict(record)


def test_whole_seconds_are_stored_as_django_stores_them(audit_connection: AuditConnection) -> None:
    record = make_record(timestamp=datetime(2026, 3, 10, 12, 0, tzinfo=UTC))
    audit_connection.commit([record])
    assert RequestAuditEntry.objects.filter(timestamp=record.timestamp, org_id=ORG, id=record.id).exists()


@pytest.mark.parametrize("size", [1, 2, 127, 128, 129, 512])
def test_batches_of_every_size_are_stored_whole(audit_connection: AuditConnection, size: int) -> None:
    records = [make_record(org_id=(ORG, OTHER_ORG)[number % 2], request_id=f"r-{number}") for number in range(size)]
    audit_connection.commit(records)
    assert set(RequestAuditEntry.objects.values_list("pk", "request_id")) == {(r.id, r.request_id) for r in records}


def test_the_outcome_completes_the_intent(audit_connection: AuditConnection) -> None:
    begun = CallRecord(org_id=ORG, user_id="u", user_label="Ana", source="cli", request_id="r", vendor="acme", tool="t")
    ended = replace(
        begun,
        status="error",
        error_code="vendor_timeout",
        duration_ms=5,
        vendor_ms=4,
        cached=True,
        response_bytes=3,
        credential_scope="team",
        credential_name="Key",
    )
    audit_connection.commit([begun])
    assert stored(begun)["status"] == "unknown"
    audit_connection.commit([ended])
    assert stored(begun) == asdict(ended)


@pytest.mark.parametrize("size", [1, 3, 200])
@pytest.mark.parametrize(("column", "value"), [("duration_ms", -1), ("user_id", None), ("request_bytes", 2**70)])
def test_a_record_that_cannot_be_stored_is_refused_with_its_whole_batch(
    audit_connection: AuditConnection, size: int, column: str, value: object
) -> None:
    poisoned = make_record()
    force_setattr(poisoned, column, value)  # no caller can build such a record: the class keeps its own ranges
    batch = [*(make_record() for _ in range(size - 1)), poisoned]
    with pytest.raises(RecordRefused):
        audit_connection.commit(batch)
    assert not RequestAuditEntry.objects.exists()
    audit_connection.commit([make_record()])
    assert RequestAuditEntry.objects.count() == 1


@pytest.mark.parametrize("harmful", ["\x00", "\ud800", "\x1b[2J", "\r\nforged"])
def test_hostile_names_are_stored_cleaned(audit_connection: AuditConnection, harmful: str) -> None:
    record = make_record(
        tool=f"acme{harmful}", client_name=harmful * 90, user_label=harmful, request_id=uuid.uuid4().hex
    )
    audit_connection.commit([record])
    row = stored(record)
    assert row["client_name"] == record.client_name
    assert str(row["tool"]).startswith("acme\ufffd")
    assert not any(ord(character) < 32 for value in row.values() for character in str(value))


needs_postgresql = pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite knows no prepared statements")


@pytest.fixture
def _no_pooler_known() -> Iterator[None]:
    postgresql_connection._poolers_found.clear()
    yield
    postgresql_connection._poolers_found.clear()


@needs_postgresql
@pytest.mark.usefixtures("_no_pooler_known")
def test_a_statement_that_is_gone_between_batches_costs_speed_and_no_record(audit_connection: AuditConnection) -> None:
    assert isinstance(audit_connection, PostgreSQLAuditConnection)
    first, second, third = make_record(), make_record(), make_record()
    audit_connection.commit([first])
    assert audit_connection._uses_prepared
    audit_connection._pgconn.exec_(b"DEALLOCATE ALL")
    audit_connection.commit([second])
    assert not audit_connection._uses_prepared
    audit_connection.commit([third])
    assert RequestAuditEntry.objects.filter(pk__in=[first.id, second.id, third.id]).count() == 3
    next_one = open_audit_connection()
    assert isinstance(next_one, PostgreSQLAuditConnection)
    assert not next_one._uses_prepared, "the next connection is not tried in the same way"
    next_one.commit([make_record()])
    next_one.close()


@needs_postgresql
@pytest.mark.usefixtures("_no_pooler_known")
def test_a_name_that_is_taken_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """The session of the server that a pooler gives us, where another process has prepared the statement before."""
    usual = BoundedWrapper.get_new_connection

    def used_before(wrapper: BoundedWrapper, parameters: dict[str, Any]) -> Any:
        made = usual(wrapper, parameters)
        made.pgconn.prepare(postgresql_connection.STATEMENT_NAME, b"SELECT 1")
        return made

    monkeypatch.setattr(BoundedWrapper, "get_new_connection", used_before)
    opened = open_audit_connection()
    assert isinstance(opened, PostgreSQLAuditConnection)
    assert not opened._uses_prepared
    opened.commit([record := make_record()])
    opened.close()
    assert RequestAuditEntry.objects.get().pk == record.id


@needs_postgresql
@pytest.mark.usefixtures("_no_pooler_known")
def test_where_operators_say_that_there_is_a_pooler_nothing_is_prepared() -> None:
    for has_pooler in (False, True):
        opened = open_audit_connection({**connection.settings_dict, HAS_POOLER: has_pooler})
        assert isinstance(opened, PostgreSQLAuditConnection)
        opened.commit([make_record()])
        opened._pgconn.nonblocking = 0
        assert opened._pgconn.exec_(b"SELECT name FROM pg_prepared_statements").ntuples == (0 if has_pooler else 1)
        opened.close()
    assert RequestAuditEntry.objects.count() == 2


def forget_statements(committer: LoopCommitter) -> None:
    """The connection leads to a session of the server in which nothing is prepared."""
    pgconn = cast(PostgreSQLAuditConnection, committer._connection)._pgconn
    pgconn.nonblocking = 0
    pgconn.exec_(b"DEALLOCATE ALL")
    pgconn.nonblocking = 1


@needs_postgresql
@pytest.mark.usefixtures("_no_pooler_known")
async def test_a_writer_behind_a_pooler_keeps_its_connection_after_the_first_surprise() -> None:
    opened: list[AuditConnection] = []

    def open_connection() -> AuditConnection:
        opened.append(open_audit_connection())
        return opened[-1]

    writer = AuditWriter(open_connection=open_connection)
    await writer.write(make_record())
    while writer._committer is None:
        await asyncio.sleep(0)
    forget_statements(writer._committer)
    for _ in range(5):
        await writer.write(make_record())
    while writer._committer is None:
        await asyncio.sleep(0)
    committer, opened_before = writer._committer, len(opened)
    for _ in range(5):
        forget_statements(committer)  # each batch may meet another session of the server
        await writer.write(make_record())
    assert writer._committer is committer, "the connection without a prepared statement is used in the event loop, too"
    assert len(opened) == opened_before > 1, "only the surprise closed a connection"
    await writer.aclose()
    assert await RequestAuditEntry.objects.acount() == 11


@needs_postgresql
def test_a_read_only_database_fails_the_probe_already() -> None:
    read_only = copy.deepcopy(connection.settings_dict)
    read_only[GIVEN_OPTIONS] = "-c default_transaction_read_only=on"
    opened = open_audit_connection(read_only)
    for work in (opened.probe, lambda: opened.commit([make_record()])):
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            work()
    opened.close()


@needs_postgresql
def test_a_server_that_falls_silent_fails_the_batch_in_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    server = connection.settings_dict
    with relay_to(server["HOST"], int(server["PORT"] or 5432)) as relay:
        opened = open_audit_connection({**server, "HOST": "127.0.0.1", "PORT": relay.port})
        opened.commit([make_record()])
        monkeypatch.setattr(postgresql_connection, "COMMIT_TIMEOUT_S", 0.3)
        with relay.silent(), pytest.raises(TimeoutError):
            opened.commit([make_record()])
        opened.close()
