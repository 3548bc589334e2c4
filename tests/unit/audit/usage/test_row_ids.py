"""Ids of counters sort by organization, level and time, and each range has its own hours or days and no others."""

from __future__ import annotations

import uuid
from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from audit.usage.row_ids import Range, of_all_days, of_days, of_hours, of_organization, row_id
from audit.usage_keys import WHOLE_DAY

LAST_ORG = uuid.UUID(int=2**128 - 1)
orgs = st.sampled_from([uuid.UUID(int=0), uuid.UUID(int=1), uuid.UUID(int=2**24 - 1), LAST_ORG])
days = st.dates(date(1970, 1, 1), date(9999, 12, 1))
hours = st.integers(0, WHOLE_DAY - 1)
texts = st.lists(st.text(max_size=5), max_size=3)


def has(rows: Range, found: uuid.UUID) -> bool:
    return rows.low <= found <= rows.high


@given(org=orgs, day=days, hour=hours, first=hours, length=st.integers(1, WHOLE_DAY), key=texts)
def test_a_range_of_hours_has_those_hours(
    org: uuid.UUID, day: date, hour: int, first: int, length: int, key: list[str]
) -> None:
    last = min(first + length, WHOLE_DAY)
    rows = of_hours(org, day, first, last)
    assert has(rows, row_id(org, day, hour, key)) == (first <= hour < last)
    assert not has(rows, row_id(org, day, WHOLE_DAY, key))
    assert not has(rows, row_id(org, day - timedelta(days=1), hour, key))
    assert not has(rows, row_id(org, day + timedelta(days=1), hour, key))


@given(org=orgs, day=days, first=days, length=st.integers(1, 20), hour=hours, key=texts)
def test_a_range_of_days_has_those_days_and_no_hours(
    org: uuid.UUID, day: date, first: date, length: int, hour: int, key: list[str]
) -> None:
    last = first + timedelta(days=length)
    assert has(of_days(org, first, last), row_id(org, day, WHOLE_DAY, key)) == (first <= day < last)
    assert not has(of_days(org, first, last), row_id(org, day, hour, key))
    assert has(of_all_days(org), row_id(org, day, WHOLE_DAY, key))
    assert not has(of_all_days(org), row_id(org, day, hour, key))


@given(org=orgs, other=orgs, day=days, hour=st.integers(0, WHOLE_DAY), key=texts)
def test_a_range_of_an_organization_has_no_other_of_three_other_bytes(
    org: uuid.UUID, other: uuid.UUID, day: date, hour: int, key: list[str]
) -> None:
    assert has(of_organization(org), row_id(other, day, hour, key)) == (org.bytes[-3:] == other.bytes[-3:])


def test_each_part_of_a_key_makes_another_id() -> None:
    org, other, day = uuid.UUID(int=1), uuid.UUID(int=1 << 100 | 1), date(2026, 3, 10)
    found = [
        row_id(org, day, 12, ["acme", "1"]),
        row_id(other, day, 12, ["acme", "1"]),
        row_id(org, day, 13, ["acme", "1"]),
        row_id(org, day, WHOLE_DAY, ["acme", "1"]),
        row_id(org, date(2026, 3, 11), 12, ["acme", "1"]),
        row_id(org, day, 12, ["acme1", ""]),
        row_id(org, day, 12, ["acme", "2"]),
    ]
    assert len(set(found)) == len(found)
