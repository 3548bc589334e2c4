"""The statements of the sink against the suite's real database."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from django.db import connection
from msgspec.structs import asdict, force_setattr, replace

from audit.call_record import MAX_INTEGER, CallRecord
from audit.models import RequestAuditEntry
from audit.sink import PostgreSQLSink, RecordRefused, Sink, open_sink
from tests.api.audit.rows import ORG, OTHER_ORG, make_record

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def sink() -> Iterator[Sink]:
    opened = open_sink()
    yield opened
    opened.close()


def stored(record: CallRecord) -> dict[str, object]:
    return RequestAuditEntry.objects.values().get(pk=record.id)


def test_a_record_is_stored_as_it_is(sink: Sink) -> None:
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
    sink.commit([record])
    assert stored(record) == asdict(record)


def test_whole_seconds_are_stored_as_django_stores_them(sink: Sink) -> None:
    record = make_record(timestamp=datetime(2026, 3, 10, 12, 0, tzinfo=UTC))
    sink.commit([record])
    assert RequestAuditEntry.objects.filter(timestamp=record.timestamp, org_id=ORG, id=record.id).exists()


@pytest.mark.parametrize("size", [1, 2, 127, 128, 129, 512])
def test_batches_of_every_size_are_stored_whole(sink: Sink, size: int) -> None:
    records = [make_record(org_id=(ORG, OTHER_ORG)[number % 2], request_id=f"r-{number}") for number in range(size)]
    sink.commit(records)
    assert set(RequestAuditEntry.objects.values_list("pk", "request_id")) == {(r.id, r.request_id) for r in records}


def test_the_outcome_completes_the_intent(sink: Sink) -> None:
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
    sink.commit([begun])
    assert stored(begun)["status"] == "unknown"
    sink.commit([ended])
    assert stored(begun) == asdict(ended)


def test_a_late_intent_or_a_second_outcome_changes_nothing(sink: Sink) -> None:
    ended = make_record(status="success", duration_ms=5)
    sink.commit([ended])
    for later in (replace(ended, status="unknown", duration_ms=0), replace(ended, status="error", error_code="x")):
        sink.commit([later])
        assert stored(ended) == asdict(ended)


def test_the_same_batch_again_adds_nothing(sink: Sink) -> None:
    records = [make_record(request_id=f"r-{number}") for number in range(40)]
    sink.commit(records)
    sink.commit([*records, make_record()])
    assert RequestAuditEntry.objects.count() == 41


def test_a_row_of_another_organization_is_never_completed(sink: Sink) -> None:
    begun = make_record(org_id=OTHER_ORG, status="unknown")
    sink.commit([begun])
    sink.commit([replace(begun, org_id=ORG, status="success")])
    assert stored(begun) == asdict(begun)


@pytest.mark.parametrize("size", [1, 3, 200])
@pytest.mark.parametrize(("column", "value"), [("duration_ms", -1), ("user_id", None), ("request_bytes", 2**70)])
def test_a_record_that_cannot_be_stored_is_refused_with_its_whole_batch(
    sink: Sink, size: int, column: str, value: object
) -> None:
    poisoned = make_record()
    force_setattr(poisoned, column, value)  # no caller can build such a record: the class keeps its own ranges
    batch = [*(make_record() for _ in range(size - 1)), poisoned]
    with pytest.raises(RecordRefused):
        sink.commit(batch)
    assert not RequestAuditEntry.objects.exists()
    sink.commit([make_record()])
    assert RequestAuditEntry.objects.count() == 1


@pytest.mark.parametrize("harmful", ["\x00", "\ud800", "\x1b[2J", "\r\nforged"])
def test_hostile_names_are_stored_cleaned(sink: Sink, harmful: str) -> None:
    record = make_record(
        tool=f"acme{harmful}", client_name=harmful * 90, user_label=harmful, request_id=uuid.uuid4().hex
    )
    sink.commit([record])
    row = stored(record)
    assert row["client_name"] == record.client_name
    assert str(row["tool"]).startswith("acme\ufffd")
    assert not any(ord(character) < 32 for value in row.values() for character in str(value))


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite knows no prepared statements")
def test_a_pooler_that_forgets_what_was_prepared_costs_speed_and_no_record(sink: Sink) -> None:
    assert isinstance(sink, PostgreSQLSink)
    first, second = make_record(), make_record()
    sink.commit([first])
    sink._pgconn.exec_(b"DEALLOCATE ALL")
    sink.commit([second])
    assert not sink.is_prepared
    assert RequestAuditEntry.objects.filter(pk__in=[first.id, second.id]).count() == 2
