"""Both logs' pages: each filter on each page, presets, counts, exports, pages, and what is refused."""

from __future__ import annotations

import csv
import html
import io
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
import time_machine
from django.urls import reverse

from audit import log_pages
from audit.models import AdminAuditEntry, RequestAuditEntry
from audit.pages import log_page
from tests.api.audit.log_rows import NOON, add_call, add_calls, add_change
from tests.api.pages.conftest import INERT, SCRIPT, Site, text
from tests.factories.streamed import body_of

REQUESTS, CHANGES = "audit_pages:request-log", "audit_pages:admin-log"
PAGES = pytest.mark.parametrize("page", [REQUESTS, CHANGES])
NOW = NOON + timedelta(hours=1)
A_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Filter:
    """A filter of a page, and the label of its pill."""

    page: str
    query: dict[str, str]
    pill: str


# Of the two rows of each page, "ours" matches and "left out" does not.
FILTERS = [
    Filter(REQUESTS, {"user_id": "user-1"}, "Who: Ours"),
    Filter(REQUESTS, {"user_id": "ours"}, "Who: Ours"),
    Filter(REQUESTS, {"vendor": "acme"}, "Vendor: acme"),
    Filter(REQUESTS, {"tool": "acme_list"}, "Tool: acme_list"),
    Filter(REQUESTS, {"source": "cli"}, "Source: cli"),
    Filter(REQUESTS, {"status": "denied"}, "Result: denied"),
    Filter(REQUESTS, {"kind": "tool"}, "Kind: tool"),
    Filter(REQUESTS, {"request_id": "r-1"}, "Request ID: r-1"),
    Filter(CHANGES, {"actor_id": "user-1"}, "Who: Ours"),
    Filter(CHANGES, {"actor_id": "OURS"}, "Who: Ours"),
    Filter(CHANGES, {"event_type": "member.removed"}, "Event: member.removed"),
    Filter(CHANGES, {"target_id": "user-2"}, "Target ID: user-2"),
    *(
        Filter(page, query, pill)
        for page in (REQUESTS, CHANGES)
        for query, pill in (
            ({"period": "1h"}, "Time: Last hour"),
            ({"period": "today"}, "Time: Today"),
            ({"period": "7d"}, "Time: Last 7 days"),
            ({"period": "30d"}, "Time: Last 30 days"),
            ({"start": "2026-03-10"}, "From: 2026-03-10"),
            ({"start": "2026-03-10", "end": "2026-03-10"}, "To: 2026-03-10"),
            ({"start": "2026-03-10T11:59:00Z"}, "From: 2026-03-10T11:59:00Z"),
        )
    ),
]


@pytest.fixture
def now() -> Iterator[None]:
    with time_machine.travel(NOW, tick=False):
        yield


@pytest.fixture
def logged(site: Site) -> Site:
    """A row that the filters find and one that they leave out, and the first one's twin in another organization."""
    org, other = site.cast.org.id, site.cast.other_org.id
    ours: dict[str, Any] = {"status": "denied", "source": "cli", "error_code": "forbidden"}
    long_ago = -60 * 24 * 60
    add_call(org, user_label="Ours", **ours)
    add_call(other, user_label="Foreign", **ours)
    late: dict[str, Any] = {"user_id": "user-9", "vendor": "globex", "tool": "", "request_id": "r-9"}
    late |= {"kind": "resource", "item": "test://left-out"}
    add_call(org, minutes=long_ago, user_label="Left out", **late)
    add_change(org, actor_label="Ours")
    add_change(other, actor_label="Foreign")
    add_change(
        org,
        minutes=long_ago,
        actor_id="user-9",
        actor_label="Left out",
        event_type="team.created",
        target_id="team-9",
    )
    return site


def ask(site: Site, page: str, query: dict[str, str] | None = None, who: str = "admin") -> Any:
    return site.cast.client(who).get(site.path(page), query or {})


def details(site: Site, answer: Any, at: int = 0, who: str = "admin") -> Any:
    """The details of a row of the page, as its script asks for them."""
    address = f"{answer.request['PATH_INFO']}?entry={answer.context['rows'][at]['entry'].id}"
    assert f'href="?{address.partition("?")[2]}"' in text(answer)
    return site.cast.client(who).get(address, headers={"HX-Request": "true"})


def labels(answer: Any) -> list[str]:
    return [getattr(entry, "user_label", "") or entry.actor_label for entry in answer.context["entries"]]


def exported(site: Site, answer: Any) -> list[dict[str, str]]:
    """The rows behind the page's export link."""
    found = site.cast.client("admin").get(answer.context["export_url"])
    assert found.status_code == 200
    return list(csv.DictReader(io.StringIO(body_of(found).decode(), newline="")))


@PAGES
def test_without_filters_every_row_of_the_organization_is_shown(logged: Site, page: str) -> None:
    answer = ask(logged, page)
    assert labels(answer) == ["Ours", "Left out"]
    assert "Foreign" not in text(answer)
    assert not answer.context["pills"]


@pytest.mark.usefixtures("now")
@pytest.mark.parametrize("each", FILTERS, ids=lambda each: f"{each.page[12:]} {urlencode(each.query)}")
def test_each_filter_of_each_page(logged: Site, each: Filter) -> None:
    query = each.query
    answer = ask(logged, each.page, query)
    page = text(answer)
    assert labels(answer) == ["Ours"]
    assert "Foreign" not in page
    assert re.search(rf'class="pill" href="[^"]*">{re.escape(each.pill)}\s', page), each.pill
    assert len(answer.context["pills"]) == len(query)
    # The address without the pill shows the other row again.
    (*_, (_, _, url)) = answer.context["pills"]
    without = logged.cast.client("admin").get(f"{logged.path(each.page)}{url}")
    assert len(without.context["pills"]) == len(query) - 1
    # The export has the page's rows and no others.
    names = {row.get("user") or row["actor"] for row in exported(logged, answer)}
    assert names == {"Ours"}


@PAGES
def test_all_filters_together_keep_one_another(logged: Site, page: str) -> None:
    own = [each.query for each in FILTERS if each.page == page and not {"period", "start"} & set(each.query)]
    query = {name: value for each in reversed(own) for name, value in each.items()}
    answer = ask(logged, page, {**query, "period": "30d"})
    presets = {label: parse_qs(url[1:]) for label, url, _ in answer.context["presets"]}
    for label, kept in presets.items():
        assert {name: kept[name] for name in query} == {name: [value] for name, value in query.items()}, label
    assert presets["Last 7 days"]["period"] == ["7d"]
    assert "period" not in presets["All time"]
    assert [label for label, _, is_current in answer.context["presets"] if is_current] == ["Last 30 days"]


@pytest.mark.usefixtures("now")
@PAGES
def test_a_date_of_ones_own_replaces_the_preset_and_a_preset_the_date(logged: Site, page: str) -> None:
    answer = ask(logged, page, {"period": "7d", "start": "2026-01-01"})
    assert answer.context["asked"] == {"start": "2026-01-01"}
    assert labels(answer) == ["Ours", "Left out"]
    assert not any(is_current for *_, is_current in answer.context["presets"])
    hour = next(url for label, url, _ in answer.context["presets"] if label == "Last hour")
    assert parse_qs(hour[1:]) == {"period": ["1h"]}


@PAGES
@pytest.mark.parametrize(
    ("query", "label"),
    [
        ({"start": "yesterday"}, "From"),
        ({"end": "2026-02-30"}, "To"),
        ({"start": "2026-03-11", "end": "2026-03-10"}, "From"),
        ({"period": "1y"}, "Time"),
        ({"before": "nothing"}, "before"),
    ],
)
def test_a_bad_filter_is_refused_and_its_pill_stays(logged: Site, page: str, query: dict[str, str], label: str) -> None:
    name = "vendor" if page == REQUESTS else "target_id"
    answer = ask(logged, page, {**query, name: "acme"})
    assert answer.status_code == 400
    assert [each for each, _ in answer.context["errors"]] == [label]
    assert 'role="alert"' in text(answer)
    assert "Ours" not in re.sub(r"<datalist.*?</datalist>", "", text(answer)), "no row that the filter might exclude"
    shown = {url for *_, url in answer.context["pills"]}
    assert len(shown) == len(query) + 1 - ("before" in query)
    assert any(name not in url for url in shown), "the pill of the good filter can be removed"
    assert "export_url" not in answer.context
    assert "data-tail" not in text(answer)


@pytest.mark.parametrize("query", [{"status": "great"}, {"source": "web"}, {"tool": "x" * 256}, {"user_id": "a\x07"}])
def test_values_that_the_request_log_does_not_know_are_refused(logged: Site, query: dict[str, str]) -> None:
    assert ask(logged, REQUESTS, query).status_code == 400


def test_unknown_events_and_people_match_nothing(logged: Site) -> None:
    for page, query in (
        (CHANGES, {"event_type": "member.teleported"}),
        (CHANGES, {"actor_id": "nobody"}),
        (CHANGES, {"target_id": "nothing"}),
        (REQUESTS, {"user_id": "nobody"}),
        (REQUESTS, {"vendor": "nothing"}),
    ):
        answer = ask(logged, page, query)
        assert (answer.status_code, labels(answer)) == (200, [])
        assert "match these filters" in text(answer)
        (value,) = query.values()
        # The field keeps the value, so that the form sends it again.
        assert re.search(rf'(<option selected>|value="){value}["<]', text(answer))


@PAGES
@pytest.mark.parametrize(("who", "status"), [("owner", 200), ("admin", 200), ("member", 403), ("other_owner", 404)])
def test_who_reads_a_log(logged: Site, page: str, who: str, status: int) -> None:
    answer = ask(logged, page, who=who)
    assert answer.status_code == status
    assert ("Left out" in text(answer)) is (status == 200)
    assert "Foreign" not in text(answer)


@pytest.mark.usefixtures("lapsed")
@PAGES
def test_without_a_plan_the_page_says_who_can_renew_it(logged: Site, page: str) -> None:
    answer = ask(logged, page, {"start": "2026-03-10"})
    assert answer.status_code == 402
    assert "Ours" not in text(answer)
    assert "An owner can renew it: Owner" in text(answer)
    assert ask(logged, page, who="member").status_code == 403


@PAGES
def test_names_in_rows_pills_and_fields_are_inert(site: Site, page: str) -> None:
    org = site.cast.org.id
    add_call(org, user_id=SCRIPT, user_label=SCRIPT, tool=SCRIPT, vendor=SCRIPT, client_name=SCRIPT, request_id=SCRIPT)
    add_change(
        org,
        actor_id=SCRIPT,
        actor_label=SCRIPT,
        target_id=SCRIPT,
        target_label=SCRIPT,
        event_type=SCRIPT,
        metadata={SCRIPT: SCRIPT, "was": SCRIPT, "role": SCRIPT, "formerName": SCRIPT},
    )
    name = "user_id" if page == REQUESTS else "actor_id"
    for query in ({}, {name: SCRIPT}, {"start": SCRIPT, "event_type": SCRIPT, "vendor": SCRIPT}):
        answer = ask(site, page, query)
        parts = [answer, *(details(site, answer) for _ in answer.context.get("rows", ()))]
        for shown in map(text, parts):
            assert SCRIPT not in shown
            assert "<script>" not in shown.lower()
            assert INERT in shown


@PAGES
@pytest.mark.parametrize(("rows", "words"), [(0, None), (1, "1 {}"), (3, "3 {}s"), (4, "More than 100,000 {}s")])
def test_the_count_of_matching_rows(
    site: Site, page: str, rows: int, words: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_pages, "MAX_EXACT_TOTAL", 3)
    for minute in range(rows):
        add_call(site.cast.org.id, minutes=minute)
        add_change(site.cast.org.id, minutes=minute)
    noun = "call" if page == REQUESTS else "change"
    shown = text(ask(site, page))
    expected = f"0 {noun}s" if words is None else words.format(noun)
    assert f'<h2 class="log-count">{expected}</h2>' in shown
    export = f"<span>Export {expected[0].lower()}{expected[1:]}</span>"
    assert (export in shown) is (rows > 0)


@PAGES
def test_more_rows_than_one_export_holds(site: Site, page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_pages, "MAX_EXPORTED", 2)
    monkeypatch.setattr(log_page, "MAX_EXPORTED", 2)
    for minute in range(3):
        add_call(site.cast.org.id, minutes=minute)
        add_change(site.cast.org.id, minutes=minute)
    full = ask(site, page)
    assert "An export can have at most 2 rows. Choose a shorter time range." in text(full)
    assert "data-export>" not in text(full)
    short = ask(site, page, {"start": "2026-03-10T12:01:00Z"})
    assert "An export can have" not in text(short)
    assert len(exported(site, short)) == 2


def test_an_estimate_above_the_bound_is_checked(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_pages, "MAX_EXACT_TOTAL", 1)
    monkeypatch.setattr(log_pages, "MAX_EXPORTED", 4)
    monkeypatch.setattr(log_pages, "_estimate", lambda rows: 5)
    for minute in range(4):
        add_call(site.cast.org.id, minutes=minute)
    assert ask(site, REQUESTS).context["export_url"]
    add_call(site.cast.org.id, minutes=9)
    assert not ask(site, REQUESTS).context["export_url"]


@PAGES
def test_the_columns_of_an_export_are_explained(logged: Site, page: str) -> None:
    answer = ask(logged, page)
    (first, *_) = exported(logged, answer)
    assert list(answer.context["columns"]) == list(first)
    assert "is prefixed with a quote mark" in text(answer)


def test_pages_keep_the_filters(site: Site) -> None:
    add_calls(site.cast.org.id, log_page.PAGE_SIZE + 1, tool="wanted")
    add_call(site.cast.org.id, minutes=1, tool="other")
    first = ask(site, REQUESTS, {"tool": "wanted"})
    assert [row.request_id for row in first.context["entries"]] == [f"r-{number}" for number in range(50)]
    assert not first.context["newest_url"]
    second = site.owner().get(f"{site.path(REQUESTS)}{first.context['older_url']}")
    assert [row.request_id for row in second.context["entries"]] == ["r-50"]
    assert parse_qs(second.context["newest_url"][1:]) == {"tool": ["wanted"]}
    assert not second.context["older_url"]
    assert not second.context["tail_url"], "older rows do not grow"
    assert "51 calls" in text(second), "the count is of all pages"


@pytest.mark.usefixtures("now")
@PAGES
def test_the_live_tail_counts_rows_that_are_newer_than_the_page(logged: Site, page: str) -> None:
    admin = logged.cast.client("admin")
    name = "tool" if page == REQUESTS else "event_type"
    value = "acme_list" if page == REQUESTS else "member.removed"
    tail = ask(logged, page, {name: value}).context["tail_url"]
    assert admin.get(tail).json()["total"] == 0
    for org in (logged.cast.org.id, logged.cast.other_org.id):
        add_call(org, minutes=1)
        add_call(org, minutes=2, tool="another")
        add_change(org, minutes=1)
        add_change(org, minutes=2, event_type="team.created")
    found = admin.get(tail).json()
    assert (found["total"], len(found["entries"])) == (1, 1)
    assert ask(logged, page).context["tail_url"]
    assert not ask(logged, page, {"end": "2026-03-10"}).context["tail_url"], "a range with an end does not grow"


@pytest.mark.usefixtures("now")
@PAGES
def test_the_live_tail_of_an_empty_page_begins_now(site: Site, page: str) -> None:
    tail = ask(site, page).context["tail_url"]
    assert parse_qs(urlsplit(tail).query)["start"] == ["2026-03-10T13:00:00.000Z"]
    assert site.cast.client("admin").get(tail).json()["total"] == 0


@PAGES
def test_what_a_script_adds_is_hidden_without_one(logged: Site, page: str) -> None:
    answer = ask(logged, page)
    shown = text(answer) + text(details(logged, answer))
    for control in ("data-tail=", "data-export-box", "data-copy-entry", "data-keys"):
        assert re.search(rf"<[^>]*{control}[^>]* hidden>", shown), control
    assert re.search(r'<a class="btn btn-secondary" href="/api/audit[^"]+format=csv" data-export>', shown)


def link(answer: Any, label: str) -> str:
    """The address of the first link with this text."""
    found = re.search(rf'<a href="([^"]+)">{label}</a>', text(answer))
    assert found, label
    return html.unescape(found[1])


def test_a_call_leads_to_its_neighbours(site: Site) -> None:
    org, admin = site.cast.org.id, site.cast.client("admin")
    for minutes, request_id in ((-6, "early"), (-5, "first"), (0, "r-1"), (0.001, "r-1"), (5, "last"), (6, "late")):
        add_call(org, minutes=minutes, request_id=request_id)
    add_call(org, user_id="somebody-else", request_id="r-1")
    answer = ask(site, REQUESTS, {"request_id": "r-1", "user_id": "user-1", "end": "2026-03-10T12:00:00Z"})
    row = details(site, answer)
    same = admin.get(site.path(REQUESTS) + link(row, "Same request"))
    assert [row.request_id for row in same.context["entries"]] == ["r-1"] * 3
    around = admin.get(site.path(REQUESTS) + link(row, "Same caller, 5 minutes before and after"))
    assert [row.request_id for row in around.context["entries"]] == ["last", "r-1", "r-1", "first"]
    assert 'type="text" id="f-start" name="start" value="2026-03-10T11:55:00.000Z"' in text(around)


def test_a_change_leads_to_its_neighbours(site: Site) -> None:
    org, admin = site.cast.org.id, site.cast.client("admin")
    for minutes, target in ((-6, "a"), (-5, "b"), (0, "c"), (5, "d"), (60, "c")):
        add_change(org, minutes=minutes, target_id=target)
    answer = ask(site, CHANGES, {"start": "2026-03-10T12:00:00Z", "end": "2026-03-10T12:00:00Z"})
    row = details(site, answer)
    same = admin.get(site.path(CHANGES) + link(row, "Same target"))
    assert [row.target_id for row in same.context["entries"]] == ["c", "c"]
    around = admin.get(site.path(CHANGES) + link(row, "Same actor, 5 minutes before and after"))
    assert [row.target_id for row in around.context["entries"]] == ["d", "c", "b"]


@pytest.mark.parametrize(
    ("code", "route", "names"),
    [
        ("tool_not_allowed", "proxy_pages:tool-access", ["fake"]),
        ("unknown_tool", "proxy_pages:tool-access", ["fake"]),
        ("no_credentials", "credentials:connection", ["fake"]),
        ("unusable_credentials", "credentials:connection", ["fake"]),
        ("vendor_rejected_credentials", "credentials:connection", ["fake"]),
        ("no_server_access", "orgs:server-access", []),
        ("insufficient_scope", "oauth_pages:apps", []),
        ("unknown_vendor", "proxy_pages:vendors", []),
    ],
)
def test_a_refused_call_leads_to_the_page_that_changes_it(site: Site, code: str, route: str, names: list[str]) -> None:
    add_call(site.cast.org.id, vendor="fake", status="denied", error_code=code)
    answer = details(site, ask(site, REQUESTS))
    row = answer.context["row"]
    assert urlsplit(row["remedy"].url).path == reverse(route, args=[site.cast.org.id, *names])
    assert site.owner().get(row["remedy"].url).status_code == 200
    assert row["remedy"].text in html.unescape(text(answer))


def test_a_resource_is_shown_by_its_address(site: Site) -> None:
    address = "test://one/<b>"
    add_call(site.cast.org.id, vendor="fake", tool="", kind="resource", item=address)
    add_call(site.cast.other_org.id, vendor="fake", tool="", kind="resource", item="test://foreign")
    answer = ask(site, REQUESTS, {"item": address})
    shown = text(answer)
    assert "test://one/&lt;b&gt;" in shown
    assert "test://foreign" not in shown
    assert "Resource or prompt: test://one" in shown
    drawer = text(details(site, answer))
    assert "test://one/&lt;b&gt;" in drawer
    assert "?item=test%3A%2F%2Fone%2F%3Cb%3E" in drawer


def test_other_calls_lead_nowhere(site: Site) -> None:
    org = site.cast.org.id
    add_call(org)
    add_call(org, vendor="gone", status="denied", error_code="tool_not_allowed")
    answer = ask(site, REQUESTS)
    assert [details(site, answer, at).context["row"]["remedy"] for at in range(2)] == [None] * 2


def test_a_rate_limited_call_leads_to_the_calls_that_used_the_quota_up(site: Site) -> None:
    org = site.cast.org.id
    for minutes, request_id in ((-61, "older"), (-60, "first"), (-1, "last"), (1, "later")):
        add_call(org, minutes=minutes, request_id=request_id)
    add_call(org, minutes=-1, user_id="user-2")
    add_call(org, status="denied", error_code="rate_limited", request_id="refused", count=9)
    answer = ask(site, REQUESTS, {"status": "denied"})
    refused = details(site, answer)
    assert "reached its limit of calls per hour" in text(refused)
    hour = site.owner().get(site.path(REQUESTS) + link(refused, "Calls in the hour before"))
    assert [row.request_id for row in hour.context["entries"]] == ["refused", "last", "first"]


def test_a_change_shows_its_values_before_and_after(site: Site) -> None:
    add_change(site.cast.org.id, event_type="member.role_changed", metadata={"role": "admin", "was": "member"})
    shown = text(details(site, ask(site, CHANGES)))
    assert '<th scope="row">Role</th><td>member</td><td>admin</td>' in shown


@PAGES
def test_a_row_without_scripts_has_a_page_with_its_details(logged: Site, page: str) -> None:
    answer = ask(logged, page)
    part = details(logged, answer)
    assert "<html" not in text(part)
    assert "Nearby" not in text(answer)
    alone = ask(logged, page, {"entry": str(answer.context["rows"][0]["entry"].id)})
    assert [row["entry"].id for row in alone.context["rows"]] == [answer.context["rows"][0]["entry"].id]
    assert "data-drawer open" in text(alone)
    for each in (alone, part):
        assert text(each).count("Nearby") == 1
    # The way back to all rows.
    assert f'href="{logged.path(page)}">Newest</a>' in text(alone)


@PAGES
@pytest.mark.parametrize("headers", [{}, {"HX-Request": "true"}])
@pytest.mark.parametrize(
    ("who", "status"), [("owner", 200), ("admin", 200), ("member", 403), ("other_owner", 404), ("nobody", None)]
)
def test_who_reads_the_details_of_a_row(
    logged: Site, page: str, headers: dict[str, str], who: str, status: int | None
) -> None:
    entry = ask(logged, page).context["rows"][0]["entry"].id
    answer = logged.cast.client(who).get(logged.path(page), {"entry": str(entry)}, headers=headers)
    assert answer.status_code == (status or (204 if headers else 302))
    assert ("Nearby" in text(answer)) is (status == 200)


@PAGES
@pytest.mark.parametrize("headers", [{}, {"HX-Request": "true"}])
def test_no_details_of_a_row_that_the_page_does_not_list(logged: Site, page: str, headers: dict[str, str]) -> None:
    log = RequestAuditEntry if page == REQUESTS else AdminAuditEntry
    foreign = log.objects.get(org_id=logged.cast.other_org.id).pk
    for entry in (str(foreign), str(uuid.uuid4()), "nothing", ""):
        answer = logged.cast.client("admin").get(logged.path(page), {"entry": entry}, headers=headers)
        assert answer.status_code == 404
        assert "Foreign" not in text(answer)


def test_the_activity_of_a_vendor_has_no_details_of_another_vendors_call(site: Site) -> None:
    add_call(site.cast.org.id, vendor="elsewhere")
    entry = ask(site, REQUESTS).context["rows"][0]["entry"].id
    of_vendor = site.path("audit_pages:vendor-activity", "fake")
    assert site.owner().get(of_vendor, {"entry": str(entry)}).status_code == 404


@pytest.mark.usefixtures("lapsed")
@PAGES
def test_details_need_a_plan_like_the_log(logged: Site, page: str) -> None:
    log = RequestAuditEntry if page == REQUESTS else AdminAuditEntry
    entry = log.objects.filter(org_id=logged.cast.org.id).first()
    assert entry is not None
    assert ask(logged, page, {"entry": str(entry.pk)}).status_code == 402


def test_people_of_another_organization_are_not_suggested(logged: Site) -> None:
    for page in (REQUESTS, CHANGES):
        assert ask(logged, page).context["suggested"]["people"] == ["Left out", "Ours"]


def test_a_change_is_a_sentence_whose_names_are_links(site: Site) -> None:
    """Names of another organization's log are not there, and an actor that is no person is a plain name."""
    org, agent, owner = site.cast.org.id, str(uuid.uuid4()), str(site.cast.user("owner").id)
    change = {"event_type": "agent_key.created", "target_id": agent, "target_label": "Triage bot"}
    add_change(org, actor_id=owner, actor_label="Olga", **change)
    add_change(org, actor_id="system", actor_label="System", **change)
    add_change(site.cast.other_org.id, actor_id=owner, actor_label="Olga", **{**change, "target_label": "Foreign bot"})
    page = ask(site, CHANGES).content.decode()
    assert page.count(f'created a key for <a href="/orgs/{org}/agents/{agent}">Triage bot</a>') == 2
    assert f'<a href="/orgs/{org}/people/{owner}">Olga</a>' in page
    assert re.search(r"<td[^>]*>System</td>", page)
    assert "Foreign bot" not in page
