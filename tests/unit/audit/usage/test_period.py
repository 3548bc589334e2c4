"""Periods from query strings, and their parts: no moment is in two of them, and none is in no part."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.usage.period import DAY, HOUR, HoursOfDay, Parts, Period
from gateway.lib.errors import Invalid

NOW = datetime(2026, 3, 10, 12, 30, 15, 250_000, tzinfo=UTC)
TOMORROW = datetime(2026, 3, 11, tzinfo=UTC)
BEGIN = datetime(2026, 2, 27, 22, tzinfo=UTC)


@pytest.mark.parametrize(
    ("query", "start", "end_before", "end"),
    [
        ({}, TOMORROW - 30 * DAY, TOMORROW, NOW),
        ({"range": "7d", "page": "x"}, TOMORROW - 7 * DAY, TOMORROW, NOW),
        ({"range": "1y", "start": "", "end": " "}, TOMORROW - 365 * DAY, TOMORROW, NOW),
        ({"range": "all"}, None, TOMORROW, NOW),
        ({"start": "2026-03-10T12:30:15.250Z"}, NOW, TOMORROW, NOW),
        ({"end": "2026-03-01"}, None, datetime(2026, 3, 2, tzinfo=UTC), datetime(2026, 3, 1, 23, 59, 59, 999_000, UTC)),
        ({"range": "7d", "start": "2026-03-01T01:00:00+01:00"}, datetime(2026, 3, 1, tzinfo=UTC), TOMORROW, NOW),
    ],
)
def test_a_query_names_a_period(
    query: dict[str, str], start: datetime | None, end_before: datetime, end: datetime
) -> None:
    assert Period.parse(query, NOW) == Period(start, end_before, end)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"range": "30"}, "range"),
        ({"range": "x", "start": "2026-03-01"}, "range"),
        ({"start": "2026-03-10T12:30:16Z"}, "start"),
        ({"end": "never"}, "end"),
    ],
)
def test_other_queries_are_refused(query: dict[str, str], field: str) -> None:
    with pytest.raises(Invalid) as refusal:
        Period.parse(query, NOW)
    assert set(refusal.value.fields) == {field}


def test_a_period_without_a_start_begins_with_the_first_call() -> None:
    period = Period.parse({"range": "all"}, NOW)
    assert period.shown_start(date(2025, 1, 2)) == datetime(2025, 1, 2, tzinfo=UTC)
    assert period.shown_start(None) == TOMORROW - DAY
    assert Period.parse({"range": "7d"}, NOW).shown_start(date(2025, 1, 2)) == TOMORROW - 7 * DAY


def spans(parts: Parts) -> list[tuple[datetime, datetime]]:
    """Half-open spans of all parts, the earliest first."""
    found = list(parts.edges)
    for days in parts.days:
        first, last = (datetime(each.year, each.month, each.day, tzinfo=UTC) for each in days)
        found.append((first, last))
    for each in parts.hours:
        midnight = datetime(each.day.year, each.day.month, each.day.day, tzinfo=UTC)
        found.append((midnight + each.first * HOUR, midnight + each.last * HOUR))
    return sorted(found)


# Often whole hours and whole days.
moments = st.one_of(
    st.integers(0, 4 * 86_400_000).map(lambda ms: BEGIN + timedelta(milliseconds=ms)),
    st.integers(0, 96).map(lambda hours: BEGIN + timedelta(hours=hours)),
)


@given(start=moments, end=moments)
def test_parts_make_up_the_period_without_overlap_or_gap(start: datetime, end: datetime) -> None:
    parts = Parts.of(Period(start, end, end))
    found = spans(parts)
    if start >= end:
        assert found == []
        return
    assert found[0][0] == start
    assert found[-1][1] == end
    assert all(low < high for low, high in found)
    assert all(before[1] == after[0] for before, after in pairwise(found))
    assert all(each.first < each.last <= 24 for each in parts.hours)
    assert all(high - low < HOUR for low, high in parts.edges)
    rolled = [each for each in found if each not in parts.edges]
    assert parts.rolled == ((rolled[0][0], rolled[-1][1]) if rolled else None)


def test_whole_days_are_one_part() -> None:
    days = ((date(2026, 3, 4), date(2026, 3, 11)),)
    assert Parts.of(Period.parse({"range": "7d"}, NOW)) == Parts(days, (), (), (TOMORROW - 7 * DAY, TOMORROW))


def test_a_period_without_ends_stays_within_what_can_be_stored() -> None:
    everything = Parts.of(Period(None, datetime.max.replace(tzinfo=UTC), NOW))
    assert everything.days == ((date(1970, 1, 1), date(9000, 1, 1)),)
    assert Parts.of(Period(datetime.min.replace(tzinfo=UTC), datetime(1960, 1, 1, tzinfo=UTC), NOW)).edges == ()
    hours = Parts.of(Period(BEGIN, BEGIN + HOUR, NOW)).hours
    assert hours == (HoursOfDay(date(2026, 2, 27), 22, 23),)


def test_days_that_are_known_otherwise_leave_the_ranges_between_them() -> None:
    week = Parts.of(Period.parse({"range": "7d"}, NOW))
    first, last = week.days[0]
    assert week.without([]) == week
    assert week.without([first]).days == ((first + DAY, last),)
    assert week.without([last - DAY, first + 2 * DAY]).days == ((first, first + 2 * DAY), (first + 3 * DAY, last - DAY))
    assert week.without(first + number * DAY for number in range(7)).days == ()
