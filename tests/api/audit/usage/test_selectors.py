"""Dashboards are a naive recount of the log, for any period and at any place of the roll-up."""

from __future__ import annotations

import uuid
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.models import RequestAuditEntry, UsageCount, UsageDuration
from audit.usage.branches import OF_VENDORS
from audit.usage.durations import bucket_of, percentile
from audit.usage.parts import TOOLS, Parts, groups
from audit.usage.period import Period
from audit.usage.ready_days import make_ready
from audit.usage.rollup import roll_up
from audit.usage.selectors import (
    Dashboard,
    Usage,
    VendorUsage,
    daily_usage,
    dashboard,
    days_of_caller,
    savings,
    usage,
    vendors,
)
from tests.api.audit.rows import NOON, ORG, OTHER_ORG
from tests.api.audit.usage.rows import EVENING, calls, log_row, outcome, rows_of, store, undone
from tests.factories.statements import statements

pytestmark = pytest.mark.django_db
MARCH = Period(datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 4, 1, tzinfo=UTC), datetime(2026, 3, 31, tzinfo=UTC))
LIST_BYTES = {"acme": 1_001.5, "globex": 40}
Rows = list[RequestAuditEntry]


def counted(rows: Rows) -> Rows:
    return [row for row in rows if outcome(row) in {"success", "error", "unknown"}]


def total(rows: Rows) -> dict[str, int]:
    timed = [row for row in rows if row.status in {"success", "error"}]
    durations = Counter(bucket_of(row.duration_ms) for row in timed)
    by_outcome: Counter[str] = Counter()
    for row in rows:
        by_outcome[outcome(row)] += row.count
    return {
        "calls": by_outcome["success"] + by_outcome["error"] + by_outcome["unknown"],
        "errors": by_outcome["error"],
        "denied": by_outcome["denied"],
        "rate_limited": by_outcome["rate_limited"],
        "average_ms": round(sum(row.duration_ms for row in timed) / len(timed)) if timed else 0,
        "p50_ms": percentile(durations, 0.5),
        "p95_ms": percentile(durations, 0.95),
    }


def shown_total(found: Usage | VendorUsage) -> dict[str, int]:
    each = found.total
    return {
        "calls": each.calls,
        "errors": each.errors,
        "denied": each.denied,
        "rate_limited": each.rate_limited,
        "average_ms": each.average_ms,
        "p50_ms": found.percentiles.p50_ms,
        "p95_ms": found.percentiles.p95_ms,
    }


def by(rows: Rows, name: str) -> dict[str, Rows]:
    found: dict[str, Rows] = {}
    for row in rows:
        found.setdefault(getattr(row, name), []).append(row)
    return found


def most_called(found: dict[str, Rows]) -> list[tuple[str, int]]:
    return sorted(((key, len(rows)) for key, rows in found.items()), key=lambda each: (-each[1], each[0]))


def assert_usage(rows: Rows, found: Usage) -> None:
    called = counted(rows)
    assert shown_total(found) == total(rows)
    assert found.vendors == most_called({key: own for key, own in by(called, "vendor").items() if key})
    assert [(user.user_id, user.calls) for user in found.users] == most_called(by(called, "user_id"))
    assert found.mcp == len([row for row in called if row.source == "mcp"])
    assert found.cli == len(called) - found.mcp
    days: dict[Any, Rows] = {}
    for row in rows:
        days.setdefault(row.timestamp.date(), []).append(row)
    assert [day.day for day in found.days] == sorted(days)
    for day in found.days:
        expected = total(days[day.day])
        assert (day.total.calls, day.total.average_ms) == (expected["calls"], expected["average_ms"])
        assert (day.total.errors, day.total.denied, day.total.rate_limited) == (
            expected["errors"],
            expected["denied"],
            expected["rate_limited"],
        )
        assert day.mcp + day.cli == day.total.calls


def assert_vendors(rows: Rows, found: list[VendorUsage]) -> None:
    called = {key: own for key, own in by(counted(rows), "vendor").items() if key}
    assert [(each.vendor, each.total.calls) for each in found] == most_called(called)
    for each in found:
        own = called[each.vendor]
        assert shown_total(each) == total([row for row in rows if row.vendor == each.vendor])
        assert each.user_count == len({row.user_id for row in own})
        assert each.tools == most_called(by(own, "tool"))[:5]


def assert_parts(rows: Rows, org_id: uuid.UUID, period: Period) -> None:
    """All figures at once are those of each function, and those of one vendor or caller are its own."""
    all_vendors = vendors(org_id, period)
    found = dashboard(org_id, period, LIST_BYTES)
    assert found == Dashboard(usage(org_id, period), all_vendors, savings(org_id, period, LIST_BYTES))
    daily = daily_usage(org_id, period)
    assert (daily.start, daily.end, daily.total) == (found.usage.start, found.usage.end, found.usage.total)
    assert (daily.user_count, daily.days) == (found.usage.user_count, found.usage.days)
    for slug in ("acme", "globex", "unknown"):
        assert vendors(org_id, period, slug=slug) == [each for each in all_vendors if each.vendor == slug]
    for user_id in {"nobody", *(row.user_id for row in rows)}:
        own = [row for row in rows if row.user_id == user_id]
        days = days_of_caller(org_id, user_id, period)
        assert [day.day for day in days] == sorted({row.timestamp.date() for row in own})
        assert sum(day.total.calls for day in days) == len(counted(own))


def assert_savings(rows: Rows, org_id: uuid.UUID, period: Period) -> None:
    found = savings(org_id, period, LIST_BYTES)
    called = counted(rows)
    cli = [row for row in called if row.source == "cli"]
    unloaded = {(row.timestamp.date(), row.vendor, row.user_id) for row in cli}
    assert (found.mcp_calls, found.cli_calls) == (len(called) - len(cli), len(cli))
    assert found.tool_list_bytes == round(sum(LIST_BYTES.get(vendor, 0) for _, vendor, _ in unloaded))
    assert found.tokens == found.tool_list_bytes // 4
    assert found.usd == pytest.approx(found.tokens * 3 / 1_000_000)
    assert found.cli_response_bytes == sum(row.response_bytes for row in cli)
    assert found.mcp_response_bytes == sum(row.response_bytes for row in called if row.source == "mcp")


moments = st.integers(-3_600_000, 32 * 3_600_000).map(lambda ms: EVENING + timedelta(milliseconds=ms))


@pytest.mark.django_db(transaction=True)
@given(
    facts=st.lists(calls, max_size=30),
    batches=st.lists(st.tuples(st.integers(1, 8), st.booleans()), max_size=3),
    bounds=st.tuples(moments | st.none(), moments | st.sampled_from([EVENING, NOON, NOON.replace(hour=0)])),
)
def test_dashboards_are_a_recount(facts: list[dict[str, Any]], batches: list[tuple[int, bool]], bounds: Any) -> None:
    """Also where days were made ready after a part of the batches."""
    start, end = bounds
    period = Period(start, end, end)
    with undone():
        stored = rows_of(facts)
        store(*stored)
        store(log_row(NOON, position=None), log_row(NOON, position=None, org_id=OTHER_ORG))
        for limit, makes_ready in batches:
            roll_up(limit)
            if makes_ready:
                make_ready(sleep=lambda _: None)
        for org_id in (ORG, OTHER_ORG):
            rows = [
                row
                for row in stored
                if row.org_id == org_id and row.timestamp < end and (start is None or row.timestamp >= start)
            ]
            assert_usage(rows, usage(org_id, period))
            assert_vendors(rows, vendors(org_id, period))
            assert_savings(rows, org_id, period)
            assert_parts(rows, org_id, period)


def test_an_organization_without_calls_has_zeros_and_empty_lists() -> None:
    store(log_row(org_id=OTHER_ORG))
    roll_up()
    store(log_row(org_id=OTHER_ORG))
    found = usage(ORG, MARCH)
    assert set(shown_total(found).values()) == {0}
    assert (found.vendors, found.users, found.days, found.mcp, found.cli) == ([], [], [], 0, 0)
    assert vendors(ORG, MARCH) == []
    assert savings(ORG, MARCH, LIST_BYTES).tokens == 0
    assert (daily_usage(ORG, MARCH).user_count, daily_usage(ORG, MARCH).days) == (0, [])
    assert usage(OTHER_ORG, MARCH).total.calls == 2


def test_a_user_has_the_label_of_the_latest_call_rolled_up_or_not() -> None:
    store(log_row(NOON - timedelta(days=1), user_label="Miss Ana"))
    store(log_row(NOON, user_label="Ana"), log_row(NOON, user_label="Bo", org_id=OTHER_ORG))
    roll_up()
    assert [user.user_label for user in usage(ORG, MARCH).users] == ["Ana"]
    store(log_row(NOON + timedelta(seconds=1), user_label="Ana Lee"))
    assert [user.user_label for user in usage(ORG, MARCH).users] == ["Ana Lee"]
    store(log_row(NOON - timedelta(minutes=9), user_label="Miss Ana"))
    assert [user.user_label for user in usage(ORG, MARCH).users] == ["Ana Lee"]
    before = Period(None, NOON - timedelta(hours=5), NOON)
    roll_up()
    assert [(user.user_label, user.calls) for user in usage(ORG, before).users] == [("Ana Lee", 1)]


def test_all_reaches_beyond_the_log() -> None:
    store(log_row(NOON - timedelta(days=900), duration_ms=200), log_row(NOON, duration_ms=400))
    roll_up()
    RequestAuditEntry.objects.all().delete()
    found = usage(ORG, Period(None, NOON + timedelta(days=1), NOON))
    assert (found.total.calls, found.total.average_ms) == (2, 300)
    assert found.start == (NOON - timedelta(days=900)).replace(hour=0)
    assert [user.user_label for user in found.users] == ["Ana"]


def test_rows_that_wait_are_found_also_when_the_roll_up_is_days_behind() -> None:
    store(log_row(NOON - timedelta(days=4)))
    roll_up()
    store(*(log_row(NOON - timedelta(days=days)) for days in reversed(range(4))))
    assert usage(ORG, MARCH).total.calls == 5
    roll_up(2)
    assert usage(ORG, MARCH).total.calls == 5
    store(log_row(NOON - timedelta(minutes=14)))
    roll_up()
    store(log_row(NOON - timedelta(minutes=14), position=10**9))
    assert usage(ORG, MARCH).total.calls == 7


def test_whole_days_are_read_at_their_own_level() -> None:
    """Seven days of 24 hours are seven rows."""
    store(*(log_row(NOON.replace(hour=0) + timedelta(hours=hour)) for hour in range(7 * 24)))
    roll_up()
    UsageCount.objects.filter(hour__lt=24).delete()
    UsageDuration.objects.filter(hour__lt=24).delete()
    week = Period(NOON.replace(hour=0), NOON.replace(hour=0) + timedelta(days=7), NOON)
    assert usage(ORG, week).total.calls == 168
    assert UsageCount.objects.filter(org_id=ORG).count() == 7


def test_rows_that_wait_leave_the_database_as_buckets() -> None:
    """While no worker rolls up, they are many, and each has a duration of its own."""
    store(*(log_row(NOON, duration_ms=1_000 + number) for number in range(60)))
    store(log_row(NOON, org_id=OTHER_ORG, duration_ms=5))
    found = groups(ORG, Parts.of(MARCH), (TOOLS,), [OF_VENDORS["bucket"]])
    assert [(row.first, row.calls, row.amount) for row in found] == [("acme", 60, bucket_of(1_000))]


@pytest.mark.django_db(transaction=True)
def test_a_dashboard_keeps_no_writer_waiting() -> None:
    """SQLite has one, and a transaction of Django's begins by taking its place."""
    store(log_row())
    with statements() as asked:
        assert dashboard(ORG, MARCH, LIST_BYTES).usage.total.calls == 1
        assert daily_usage(ORG, MARCH).user_count == 1
    assert not [sql for sql in asked if sql.startswith("BEGIN")]
