"""The times of a vendor's newest calls: exact, by tool, caller and period, and of one organization."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine

from audit.usage import response_times as module
from audit.usage.response_times import Times, response_times
from tests.api.audit.rows import NOON, ORG, OTHER_ORG
from tests.api.audit.usage.rows import log_row, store

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _now() -> Iterator[None]:
    with time_machine.travel(NOON + timedelta(minutes=30), tick=False):
        yield


def call(at: datetime = NOON, vendor_ms: int = 10, **facts: Any) -> Any:
    return log_row(at, vendor_ms=vendor_ms, **facts)


def test_half_and_95_percent_of_all_calls_and_of_each_tool_and_caller() -> None:
    store(
        *(call(vendor_ms=number, tool="quick", user_id="u1", user_label="Ana") for number in range(1, 20)),
        call(vendor_ms=900, tool="slow", user_id="u2", user_label="Bo"),
    )
    found = response_times(ORG, "acme")
    assert found is not None
    assert found.total == Times("", "", calls=20, p50_ms=10, p95_ms=19)
    assert found.tools == [Times("slow", "slow", 1, 900, 900), Times("quick", "quick", 19, 10, 19)]
    assert [(each.label, each.p95_ms) for each in found.callers] == [("Bo", 900), ("Ana", 19)]
    assert found.since == NOON


def test_a_resource_counts_and_is_no_tool() -> None:
    store(call(vendor_ms=10, tool="quick"), call(vendor_ms=30, tool="", kind="resource", item="test://one"))
    found = response_times(ORG, "acme")
    assert found is not None
    assert (found.total.calls, [each.key for each in found.tools]) == (2, ["quick"])


def test_only_what_the_vendor_answered_counts() -> None:
    store(
        call(vendor_ms=10),
        call(vendor_ms=20, status="error", error_code="vendor_timeout"),
        call(vendor_ms=0, status="denied"),
        call(vendor_ms=0, status="unknown"),
        call(vendor_ms=0, cached=True),
        call(vendor_ms=500, vendor="globex"),
        call(vendor_ms=700, org_id=OTHER_ORG),
    )
    found = response_times(ORG, "acme")
    assert found is not None
    assert (found.total.calls, found.total.p95_ms) == (2, 20)
    assert response_times(ORG, "nobody") is None


def test_calls_of_a_day_are_shown_by_hour_and_others_by_day() -> None:
    store(call(NOON, 40), call(NOON - timedelta(minutes=1), 30), call(NOON - timedelta(minutes=61), 20))
    found = response_times(ORG, "acme")
    assert found is not None
    assert found.is_by_hour
    assert [(each.start.hour, each.times.p95_ms) for each in found.periods] == [(12, 40), (11, 30), (10, 20)]
    store(call(NOON - timedelta(days=2), 5))
    found = response_times(ORG, "acme")
    assert found is not None
    assert not found.is_by_hour
    assert [(each.start.day, each.times.calls) for each in found.periods] == [(10, 3), (8, 1)]


def test_a_busy_vendor_costs_no_more_than_a_bounded_number_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CALLS", 2)
    store(*(call(NOON - timedelta(minutes=number), number) for number in range(1, 6)))
    store(call(NOON - timedelta(days=40), 9_000))
    found = response_times(ORG, "acme")
    assert found is not None
    assert (found.total.calls, found.total.p95_ms) == (2, 2)


def test_the_newest_name_of_a_caller_is_shown() -> None:
    store(call(NOON, user_label="Ana Lee"), call(NOON - timedelta(hours=1), user_label="Ana"))
    found = response_times(ORG, "acme")
    assert found is not None
    assert [each.label for each in found.callers] == ["Ana Lee"]
