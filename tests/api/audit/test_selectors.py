"""Queries of the log. Every test has another organization's rows, which must not appear."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import date, timedelta

import pytest
import time_machine

from audit import selectors
from audit.filters import REQUEST_FILTERS, Filters
from audit.log_pages import Page, page_of
from audit.log_query import LogQuery
from audit.matching import matching_entries
from audit.models import RequestAuditEntry
from audit.selectors import DayCalls
from tests.api.audit.rows import NOON, ORG, OTHER_ORG, add_row

pytestmark = pytest.mark.django_db
EVERYTHING = Filters()


@pytest.fixture(autouse=True)
def _foreign_rows() -> None:
    """The same facts in another organization."""
    for status in ("success", "error", "denied"):
        add_row(org_id=OTHER_ORG, status=status, user_id="foreign", user_label="Foreign", vendor="foreign")
        add_row(org_id=OTHER_ORG, status=status)


@pytest.fixture
def _noon() -> Iterator[None]:
    with time_machine.travel(NOON, tick=False):
        yield


def page(filters: Filters = EVERYTHING, limit: int | None = None, before: uuid.UUID | None = None) -> Page:
    return page_of(matching_entries(RequestAuditEntry, ORG, filters), LogQuery(limit=limit, cursor=before))


def found(**query: str) -> list[str]:
    entries = page(Filters.parse(REQUEST_FILTERS, query)).entries
    assert {entry.org_id for entry in entries} <= {ORG}
    return [entry.request_id for entry in entries]


def test_newest_first() -> None:
    for minutes in (1, 3, 2):
        add_row(request_id=f"m-{minutes}", timestamp=NOON + timedelta(minutes=minutes))
    assert found() == ["m-3", "m-2", "m-1"]


def test_an_organization_without_rows_has_an_empty_log() -> None:
    assert page() == Page([], None)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"user_id": "user-2"}, ["b"]),
        ({"vendor": "globex"}, ["b"]),
        ({"tool": "acme_reboot"}, ["c"]),
        ({"source": "cli"}, ["c"]),
        ({"status": "denied"}, ["c"]),
        ({"request_id": "a"}, ["a"]),
        ({"user_id": "user-1", "vendor": "acme", "source": "cli"}, ["c"]),
        ({"user_id": "user-2", "source": "cli"}, []),
        ({"vendor": "foreign"}, []),
        ({"user_id": "foreign"}, []),
        ({"start": "2026-03-11"}, ["c"]),
        ({"end": "2026-03-10"}, ["b", "a"]),
        ({"start": "2026-03-10T12:00:01Z", "end": "2026-03-10"}, ["b"]),
        ({"end": "2026-03-10T12:00:01.500Z"}, ["b", "a"]),
        ({"end": "2026-03-10T12:00:01.499Z"}, ["a"]),
        ({"start": "2026-03-10T14:00:01+02:00", "end": "2026-03-10T14:00:02+02:00"}, ["b"]),
        ({"start": "2027-01-01"}, []),
    ],
)
def test_filters(query: dict[str, str], expected: list[str]) -> None:
    add_row(request_id="a")
    # Shown with milliseconds as 12:00:01.500: an end that was copied from the page includes it.
    add_row(
        request_id="b", user_id="user-2", vendor="globex", timestamp=NOON + timedelta(seconds=1, microseconds=500_900)
    )
    add_row(request_id="c", tool="acme_reboot", source="cli", status="denied", timestamp=NOON + timedelta(days=1))
    assert found(**query) == expected


def test_pages_follow_each_other_without_gap_or_repetition() -> None:
    same_moment = [add_row() for _ in range(7)]
    others = [add_row(timestamp=NOON + timedelta(seconds=number)) for number in range(1, 5)]
    expected = sorted(row.id for row in [*same_moment, *others])[::-1]
    seen, before, pages = [], None, 0
    while True:
        part = page(before=before, limit=2)
        seen += [entry.id for entry in part.entries]
        pages += 1
        # A row that arrives between two pages shifts neither.
        add_row(timestamp=NOON + timedelta(days=1))
        if part.next_cursor is None:
            break
        before = part.next_cursor
    assert seen == expected
    assert pages == 6


def test_a_full_last_page_ends_the_log() -> None:
    for _ in range(4):
        add_row()
    first = page(limit=2)
    assert first.next_cursor is not None
    assert page(before=first.next_cursor, limit=2).next_cursor is None


@pytest.mark.parametrize(("limit", "rows"), [(1, 1), (2, 2), (10_000, 3)])
def test_a_page_has_the_asked_rows(limit: int, rows: int) -> None:
    for _ in range(3):
        add_row()
    assert len(page(limit=limit).entries) == rows


@pytest.mark.usefixtures("_noon")
def test_recent_calls_have_every_day() -> None:
    add_row(timestamp=NOON)
    add_row(timestamp=NOON.replace(hour=0), status="denied")
    add_row(timestamp=NOON - timedelta(days=1, hours=12, microseconds=1))
    add_row(timestamp=NOON - timedelta(days=3))
    assert selectors.recent_calls(ORG, 3).days == [
        DayCalls(date(2026, 3, 8), 1),
        DayCalls(date(2026, 3, 9), 0),
        DayCalls(date(2026, 3, 10), 2),
    ]
    assert len(selectors.recent_calls(ORG, 14).days) == 14
    assert [day.calls for day in selectors.recent_calls(OTHER_ORG, 2).days] == [0, 6]


@pytest.mark.usefixtures("_noon")
def test_a_day_is_counted_so_far_and_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selectors, "MAX_CALLS_COUNTED", 3)
    for hours in (0, 1, 2, 3, 20, 21):
        add_row(timestamp=NOON - timedelta(hours=hours))
        add_row(org_id=OTHER_ORG, timestamp=NOON - timedelta(hours=20))
    assert [day.calls for day in selectors.recent_calls(ORG, 3).days] == [0, 2, 3]
    assert [day.calls for day in selectors.recent_calls(OTHER_ORG, 2).days] == [3, 3]


@pytest.mark.usefixtures("_noon")
def test_a_day_begins_at_midnight_utc() -> None:
    add_row(timestamp=NOON.replace(hour=0))
    add_row(timestamp=NOON.replace(hour=0) - timedelta(microseconds=1))
    add_row(status="error")
    (mine,), (theirs,) = selectors.recent_calls(ORG, 1).days, selectors.recent_calls(OTHER_ORG, 1).days
    assert (mine.calls, mine.errors, theirs.calls) == (2, 1, 6)


@pytest.mark.usefixtures("_noon")
def test_recent_errors_are_errors_and_recent() -> None:
    add_row(status="success")
    add_row(status="denied")
    add_row(status="unknown")
    add_row(status="error", request_id="old", timestamp=NOON - timedelta(days=15))
    for minutes in (3, 1, 2):
        add_row(status="error", request_id=f"e-{minutes}", timestamp=NOON - timedelta(minutes=minutes))
    assert [row.request_id for row in selectors.recent_errors(ORG)] == ["e-1", "e-2", "e-3"]
    assert [row.request_id for row in selectors.recent_errors(ORG, 2)] == ["e-1", "e-2"]
    assert {row.org_id for row in selectors.recent_errors(OTHER_ORG)} == {OTHER_ORG}


def test_last_calls_are_of_the_asked_and_of_the_organization() -> None:
    for hours in (5, 1, 3):
        add_row(user_id="user-1", timestamp=NOON - timedelta(hours=hours))
    add_row(user_id="user-2", timestamp=NOON - timedelta(days=400), status="denied")
    add_row(user_id="user-3")
    add_row(org_id=OTHER_ORG, user_id="user-2", timestamp=NOON)
    asked = ["user-1", "user-2", "foreign", "nobody"]
    found = {"user-1": NOON - timedelta(hours=1), "user-2": NOON - timedelta(days=400)}
    assert selectors.last_calls(ORG, asked) == found
    assert selectors.last_calls(ORG, []) == {}


def test_whether_anybody_ever_called() -> None:
    assert not selectors.recent_calls(ORG, 1).has_any
    assert selectors.recent_calls(OTHER_ORG, 1).has_any
    add_row(status="denied", timestamp=NOON - timedelta(days=300))
    assert selectors.recent_calls(ORG, 1).has_any
