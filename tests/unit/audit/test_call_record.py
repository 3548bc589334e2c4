from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta, timezone

import msgspec
import pytest
from django.db import models
from msgspec.structs import replace

from audit import call_record
from audit.call_record import CallRecord
from audit.call_status import CallSource, CallStatus
from audit.models import RequestAuditEntry

ORG = uuid.UUID("11111111-1111-4111-8111-111111111111")


def make_record(**changes: object) -> CallRecord:
    facts = {"org_id": ORG, "user_id": "u-1", "user_label": "Ana", "source": "mcp", "request_id": "r-1"}
    return CallRecord(**{**facts, **changes})  # type: ignore[arg-type]


def test_columns_are_those_of_the_table_in_its_order() -> None:
    columns = tuple(field.column for field in RequestAuditEntry._meta.concrete_fields)
    assert columns == (*call_record.COLUMNS, "count", "count_parts", "position"), "the database gives the others"


def test_widths_are_those_of_the_table() -> None:
    texts = {
        field.name: field.max_length
        for field in RequestAuditEntry._meta.concrete_fields
        if isinstance(field, models.CharField) and not field.choices
    }
    assert dict(call_record.WIDTHS) == texts


def test_values_are_those_of_the_models() -> None:
    columns = RequestAuditEntry._meta
    assert [value for value, _ in columns.get_field("status").choices] == list(call_record.STATUSES)
    assert [value for value, _ in columns.get_field("source").choices] == list(call_record.SOURCES)


def test_enumeration_members_are_stored_as_their_values() -> None:
    record = make_record(status=CallStatus.DENIED, source=CallSource.CLI)
    written = msgspec.json.decode(msgspec.json.encode(record))
    assert (written["status"], written["source"]) == ("denied", "cli")


def test_an_intent_is_unknown_and_its_outcome_is_the_same_call() -> None:
    begun = CallRecord(
        org_id=ORG, user_id="u-1", user_label="Ana", source="cli", request_id="r-1", vendor="acme", tool="acme_reboot"
    )
    ended = replace(begun, status="success", duration_ms=12, vendor_ms=9, response_bytes=77, credential_scope="org")
    assert (begun.status, begun.id.version, begun.timestamp.tzinfo) == ("unknown", 7, UTC)
    assert (ended.status, ended.duration_ms, ended.vendor_ms, ended.response_bytes) == ("success", 12, 9, 77)
    assert (ended.credential_scope, ended.credential_name) == ("org", "")
    assert (ended.id, ended.timestamp, ended.tool) == (begun.id, begun.timestamp, "acme_reboot")


def test_a_record_cannot_be_changed() -> None:
    record = make_record()
    with pytest.raises(AttributeError):
        record.status = "success"  # type: ignore[misc]


@pytest.mark.parametrize("name", sorted(call_record.WIDTHS))
def test_every_text_is_cut_and_cleaned(name: str) -> None:
    width = call_record.WIDTHS[name]
    assert getattr(make_record(**{name: "x" * (width + 1)}), name) == "x" * width
    assert getattr(make_record(**{name: "a\x00\x1b\r\nb"}), name) == "a\ufffd\ufffd\ufffd\ufffdb"
    assert getattr(replace(make_record(), **{name: "a\nb"}), name) == "a\ufffdb"


@pytest.mark.parametrize(("given", "kept"), [(-1, 0), (2**31, 2**31 - 1), (12.7, 12), (True, 1), (0, 0), (512, 512)])
@pytest.mark.parametrize("name", ["duration_ms", "vendor_ms", "request_bytes", "response_bytes"])
def test_numbers_stay_in_the_range_of_their_column(name: str, given: object, kept: int) -> None:
    value = getattr(make_record(**{name: given}), name)
    assert (value, type(value)) == (kept, int)


@pytest.mark.parametrize("wrong", [{"status": "fine"}, {"source": "web"}, {"timestamp": datetime(2026, 1, 1)}])  # noqa: DTZ001
def test_errors_of_ours_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="call"):
        make_record(**wrong)


def test_times_are_kept_in_utc() -> None:
    east = datetime(2026, 1, 1, 2, 0, tzinfo=timezone(timedelta(hours=2)))
    assert make_record(timestamp=east).timestamp == datetime(2026, 1, 1, 0, 0, tzinfo=UTC)
    assert make_record(timestamp=east).timestamp.tzinfo is UTC


def test_a_record_written_as_json_names_every_column() -> None:
    written = msgspec.json.decode(msgspec.json.encode(make_record(cached=True, tool="ł")))
    assert tuple(written) == call_record.COLUMNS
    assert (written["org_id"], written["cached"], written["tool"]) == (str(ORG), True, "ł")
