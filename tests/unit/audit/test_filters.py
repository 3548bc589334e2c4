from __future__ import annotations

import uuid
from datetime import UTC, datetime

import pytest

from audit.filters import ADMIN_FILTERS, REQUEST_FILTERS, Filters, parse_before
from gateway.lib.errors import Invalid


def at(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]


def parse(query: dict[str, str]) -> Filters:
    return Filters.parse(REQUEST_FILTERS, query)


def refused_fields(query: dict[str, str]) -> set[str]:
    with pytest.raises(Invalid) as refusal:
        parse(query)
    return set(refusal.value.fields)


def test_nothing_asked_means_everything() -> None:
    assert parse({}) == Filters()
    assert parse({"vendor": "", "start": " ", "page": "9", "org_id": "x"}) == Filters()


def test_every_filter_is_read() -> None:
    equal = {
        "user_id": "svc:o:c",
        "vendor": "acme",
        "tool": "acme_list",
        "source": "cli",
        "status": "denied",
        "request_id": "r-1",
    }
    asked = parse({**equal, "start": "2026-01-01", "end": "2026-01-31"})
    assert asked == Filters(equal=equal, start_at=at(2026, 1, 1), end_before=at(2026, 2, 1))


def test_filters_of_changes_are_others_and_name_all_wrong_values_too() -> None:
    wrong = {"event_type": "\x00", "actor_id": "x" * 256, "target_id": "\x1b", "start": "x", "end": "x"}
    with pytest.raises(Invalid) as refusal:
        Filters.parse(ADMIN_FILTERS, wrong)
    assert set(refusal.value.fields) == set(wrong)
    asked = Filters.parse(ADMIN_FILTERS, {"event_type": "no.such", "status": "no.such"})
    assert asked == Filters(equal={"event_type": "no.such"})


@pytest.mark.parametrize(
    ("raw", "start_at", "end_before"),
    [
        ("2026-01-31", at(2026, 1, 31), at(2026, 2, 1)),
        ("2026-01-31T08:00", at(2026, 1, 31, 8), at(2026, 1, 31, 8, 0, 0, 1000)),
        ("2026-01-31T08:00:00Z", at(2026, 1, 31, 8), at(2026, 1, 31, 8, 0, 0, 1000)),
        ("2026-01-31 10:00:00+02:00", at(2026, 1, 31, 8), at(2026, 1, 31, 8, 0, 0, 1000)),
        ("2026-01-31T08:00:00.123Z", at(2026, 1, 31, 8, 0, 0, 123000), at(2026, 1, 31, 8, 0, 0, 124000)),
        ("2026-01-31T08:00:00.123456Z", at(2026, 1, 31, 8, 0, 0, 123456), at(2026, 1, 31, 8, 0, 0, 124000)),
    ],
)
def test_bounds_include_what_they_name(raw: str, start_at: datetime, end_before: datetime) -> None:
    assert parse({"start": raw}).start_at == start_at
    assert parse({"end": raw}).end_before == end_before
    assert parse({"start": raw, "end": raw}).start_at == start_at


def test_the_last_day_of_the_calendar_is_a_day() -> None:
    assert parse({"end": "9999-12-31"}).end_before == datetime.max.replace(tzinfo=UTC)


@pytest.mark.parametrize(
    "raw",
    [
        "yesterday",
        "2026-02-30",
        "2026-1-1",
        "20260101",
        "2026-W01-1",
        "1700000000",
        "2026-01-01T25:00:00Z",
        "2026-01-01T00:00:00 02:00",
        "2026-01-01T00:00:00+99:00",
        "0001-01-01T00:00:00+05:00",
        "２０２６-01-01",
        "-1",
        "2026-01-01\n2026",
        "2026-01-01T00:00:00Z; DROP TABLE",
    ],
)
def test_bad_times_are_refused(raw: str) -> None:
    assert refused_fields({"start": raw}) == {"start"}
    assert refused_fields({"end": raw}) == {"end"}


def test_a_start_after_the_end_is_refused() -> None:
    assert refused_fields({"start": "2026-02-01", "end": "2026-01-31"}) == {"start"}


@pytest.mark.parametrize("name", ["user_id", "vendor", "tool", "request_id"])
@pytest.mark.parametrize("raw", ["a\x00b", "a\x1bb", "a\nb", "\ud800", "x" * 256])
def test_texts_that_no_row_holds_are_refused(name: str, raw: str) -> None:
    assert refused_fields({name: raw}) == {name}


def test_all_wrong_fields_are_named_at_once() -> None:
    assert refused_fields({"source": "web", "status": "fine", "start": "x", "tool": "\x00"}) == {
        "source",
        "status",
        "start",
        "tool",
    }


ORG = uuid.UUID(int=1)


def test_a_place_comes_back_exactly() -> None:
    last = uuid.uuid4()
    assert parse_before({"before": str(last)}) == last
    assert parse_before({"before": ""}) is None


@pytest.mark.parametrize("word", ["x", "1-2", "0" * 32, str(ORG).upper().replace("1", "A"), f"{ORG}0", "G" * 36])
def test_other_words_are_no_place(word: str) -> None:
    with pytest.raises(Invalid) as refusal:
        parse_before({"before": word})
    assert set(refusal.value.fields) == {"before"}
