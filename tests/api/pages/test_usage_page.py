"""The usage page: figures, days, ranges, export, and who may read it. Another organization has calls of its own."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import time_machine

from audit.pages import usage as usage_page
from audit.usage.rollup import roll_up
from tests.api.audit.rows import NOON
from tests.api.audit.usage.rows import log_row, store
from tests.api.pages.conftest import INERT, SCRIPT, Site, text

PAGE = "audit_pages:usage"


@pytest.fixture(autouse=True)
def now() -> Iterator[None]:
    with time_machine.travel(NOON + timedelta(hours=1), tick=False):
        yield


@pytest.fixture
def called(site: Site) -> Site:
    """Seven calls of three days by two people at two vendors, refusals beside them, and foreign calls."""
    org, other = site.cast.org.id, site.cast.other_org.id
    day = timedelta(days=1)
    rows = [
        *(log_row(NOON, org_id=org, user_label="Ana", duration_ms=100) for _ in range(3)),
        log_row(NOON - day, org_id=org, user_label="Ana", source="cli", duration_ms=300),
        *(log_row(NOON - 2 * day, org_id=org, user_id="u-2", user_label="Ben", vendor="globex") for _ in range(2)),
        log_row(NOON - 40 * day, org_id=org, user_label="Ana", status="error"),
        log_row(NOON, org_id=org, user_label="Ana", status="denied", error_code="forbidden"),
        log_row(NOON, org_id=org, user_label="Ana", status="denied", error_code="rate_limited", count=4),
        log_row(NOON, org_id=org, user_label="Ana", status="unknown", position=None),
        *(log_row(NOON, org_id=other, user_label="Foreign", vendor="foreign") for _ in range(9)),
    ]
    store(*rows)
    return site


def ask(site: Site, query: dict[str, str] | None = None, who: str = "admin") -> Any:
    return site.cast.client(who).get(site.path(PAGE), query or {})


def chart(answer: Any) -> dict[str, int]:
    found = re.search(r'<script id="calls-per-day" type="application/json">(.*?)</script>', text(answer))
    assert found
    drawn = json.loads(found[1])
    return dict(zip(drawn["days"], drawn["calls"], strict=True))


@pytest.mark.parametrize("is_rolled", [False, True])
def test_the_figures_of_a_range(called: Site, is_rolled: bool) -> None:
    if is_rolled:
        while roll_up():
            pass
    answer = ask(called)
    assert answer.status_code == 200
    shown = answer.context["usage"]
    assert (shown.total.calls, shown.total.denied, shown.total.rate_limited, shown.user_count) == (6, 1, 4, 2)
    assert [(each.vendor, each.calls) for each in shown.vendors] == [("acme", 4), ("globex", 2)]
    assert [(each.user_label, each.calls) for each in shown.users] == [("Ana", 4), ("Ben", 2)]
    assert "Foreign" not in text(answer)
    assert "foreign" not in text(answer)


def test_shares_are_of_all_calls_of_the_range(called: Site) -> None:
    shown = re.findall(
        r'<meter class="share" min="0" max="(\d+)" value="(\d+)".*?<span>(.*?)</span>', text(ask(called))
    )
    assert shown == [("6", "4", "67%"), ("6", "2", "33%")] * 2, "of two vendors and of two people"


def test_every_day_is_drawn_and_today_goes_on(called: Site) -> None:
    answer = ask(called, {"range": "7d"})
    assert chart(answer) == {
        "2026-03-04": 0,
        "2026-03-05": 0,
        "2026-03-06": 0,
        "2026-03-07": 0,
        "2026-03-08": 2,
        "2026-03-09": 1,
        "2026-03-10": 3,
    }
    assert [each.day.day for each in answer.context["days"] if each.is_today] == [10]
    assert text(answer).count("so far") == 1


@pytest.mark.parametrize(
    ("query", "calls", "days", "current"),
    [
        ({}, 6, 30, "30 days"),
        ({"range": "7d"}, 6, 7, "7 days"),
        ({"range": "1y"}, 7, 365, "1 year"),
        ({"range": "all"}, 7, 41, "All"),
        ({"start": "2026-03-09"}, 4, 2, ""),
        ({"start": "2026-03-08", "end": "2026-03-08", "range": "7d"}, 2, 1, ""),
    ],
)
def test_ranges(called: Site, query: dict[str, str], calls: int, days: int, current: str) -> None:
    answer = ask(called, query)
    assert answer.context["usage"].total.calls == calls
    assert len(answer.context["days"]) == days
    assert [each.label for each in answer.context["ranges"] if each.is_current] == ([current] if current else [])


@pytest.mark.parametrize(
    "query", [{"range": "10y"}, {"start": "yesterday"}, {"start": "2026-03-09", "end": "2026-03-01"}]
)
def test_a_bad_range_is_refused_and_the_usual_one_shown(called: Site, query: dict[str, str]) -> None:
    answer = ask(called, query)
    assert answer.status_code == 400
    assert "The last 30 days are shown." in text(answer)
    assert answer.context["usage"].total.calls == 6


def test_a_range_of_ten_years_is_drawn_in_part(called: Site) -> None:
    answer = ask(called, {"start": "2016-01-01"})
    assert len(answer.context["days"]) == usage_page.MAX_DAYS_DRAWN
    assert answer.context["usage"].total.calls == 7


@pytest.mark.parametrize("end", ["0001-01-01", "0001-01-05", "9999-12-31"])
def test_the_first_and_the_last_days_of_the_calendar_are_asked_for(called: Site, end: str) -> None:
    assert ask(called, {"end": end}).status_code == 200
    assert ask(called, {"start": "0001-01-01", "end": end}).status_code == 200


def test_the_export_has_a_line_for_each_day(called: Site) -> None:
    page = ask(called, {"range": "7d"})
    answer = called.cast.client("admin").get(f"{called.path(PAGE)}{page.context['csv_url']}")
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert 'filename="usage-2026-03-10.csv"' in answer["Content-Disposition"]
    rows = list(csv.DictReader(io.StringIO(answer.content.decode(), newline="")))
    assert [row["date"] for row in rows] == list(chart(page))
    assert rows[-1] == {
        "date": "2026-03-10",
        "calls": "3",
        "mcp": "3",
        "cli": "0",
        "errors": "0",
        "denied": "1",
        "rate_limited": "4",
        "average_ms": "100",
    }


def test_a_bad_range_is_no_export(called: Site) -> None:
    answer = ask(called, {"range": "x", "format": "csv"})
    assert (answer.status_code, answer["Content-Type"]) == (400, "text/html; charset=utf-8")


def test_without_a_call_the_page_says_so(site: Site) -> None:
    answer = ask(site)
    assert "No calls in this range" in text(answer)
    assert set(chart(answer).values()) == {0}


def test_labels_are_inert(site: Site) -> None:
    store(log_row(NOON, org_id=site.cast.org.id, user_label=SCRIPT, tool=SCRIPT))
    answer = text(ask(site))
    assert SCRIPT not in answer
    assert INERT in answer


def test_rows_lead_to_their_calls(called: Site) -> None:
    answer = text(ask(called))
    log = called.path("audit_pages:request-log")
    assert f'href="{log}?vendor=globex"' in answer
    assert f'href="{log}?user_id=u-2"' in answer


def test_large_numbers_have_separators_and_odd_names_a_link(site: Site) -> None:
    odd = {"vendor": "a/b c", "tool": "list?x", "user_label": "Ana"}
    store(log_row(NOON, org_id=site.cast.org.id, count=12_345, **odd))
    answer = text(ask(site))
    assert '<span class="tile-value">12,345</span>' in answer
    assert f'href="{site.path("proxy_pages:vendors")}/a%2Fb%20c/tools/list%3Fx"' in answer
    assert 'max="12345"' in answer, "a meter takes no separators"


@pytest.mark.parametrize(("who", "status"), [("owner", 200), ("admin", 200), ("member", 403), ("other_owner", 404)])
def test_who_reads_usage(called: Site, who: str, status: int) -> None:
    answer = ask(called, who=who)
    assert answer.status_code == status
    assert ("Ana" in text(answer)) is (status == 200)


@pytest.mark.usefixtures("lapsed")
def test_without_a_plan_the_page_says_who_can_renew_it(called: Site) -> None:
    answer = ask(called)
    assert answer.status_code == 402
    assert "An owner can renew it: Owner" in text(answer)
