"""A member's own calls: the page and the API show the reader's rows and no others, whatever the query says."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from django.conf import LazySettings

from tests.api.audit.log_rows import add_call, add_calls
from tests.api.pages.conftest import Site, text
from tests.factories.streamed import body_of

PAGE, LOG = "audit_pages:own-calls", "audit_pages:request-log"


@pytest.fixture
def logged(site: Site) -> Site:
    """A row of the member, one of the admin, and one of the member in another organization."""
    org, member, admin = site.cast.org.id, str(site.cast.user("member").id), str(site.cast.user("admin").id)
    add_call(org, user_id=member, user_label="Mo", vendor="fake", tool="fake_mine", request_id="r-mine")
    add_call(org, user_id=admin, user_label="Ada", vendor="hush", tool="hush_tool", request_id="r-ada")
    add_call(site.cast.other_org.id, user_id=member, user_label="Mo", vendor="far", tool="far_tool")
    return site


def ask(site: Site, query: dict[str, str] | None = None, who: str = "member") -> Any:
    return site.cast.client(who).get(site.path(PAGE), query or {})


def tools(answer: Any) -> list[str]:
    return [entry.tool for entry in answer.context["entries"]]


@pytest.mark.parametrize("query", [{}, {"team_id": "x"}, {"user_id": "ada"}, {"user_id": "\x07"}])
def test_a_member_sees_their_own_rows_whatever_the_query_says(logged: Site, query: dict[str, str]) -> None:
    admin = str(logged.cast.user("admin").id)
    for asked in (query, {**query, "user_id": admin}):
        answer = ask(logged, asked)
        assert (answer.status_code, tools(answer), answer.context["pills"]) == (200, ["fake_mine"], [])
        page = text(answer)
        assert not [word for word in ("Ada", "hush", "far_tool", "r-ada") if word in page]
    assert tools(ask(logged, {"user_id": str(logged.cast.user("member").id)}, who="admin")) == ["hush_tool"]
    assert tools(ask(logged, who="owner")) == []


def test_filters_narrow_ones_own_rows(logged: Site) -> None:
    for query in ({"vendor": "Fake"}, {"vendor": "fake"}, {"tool": "fake_mine"}, {"request_id": "r-mine"}):
        assert tools(ask(logged, query)) == ["fake_mine"], query
    for query in ({"vendor": "hush"}, {"tool": "hush_tool"}, {"request_id": "r-ada"}, {"status": "error"}):
        assert tools(ask(logged, query)) == [], query
    assert ask(logged, {"status": "great"}).status_code == 400


def test_details_are_of_ones_own_rows_without_the_credentials_name(logged: Site) -> None:
    org = logged.cast.org
    mine = add_call(
        org.id,
        user_id=str(logged.cast.user("member").id),
        status="denied",
        error_code="no_server_access",
        vendor="fake",
        credential_scope="named_key",
        credential_name="secret project",
    )
    foreign = add_call(org.id, user_id=str(logged.cast.user("admin").id))
    for headers in ({}, {"HX-Request": "true"}):
        browser, path = logged.cast.client("member"), logged.path(PAGE)
        page = text(browser.get(f"{path}?entry={mine.id}", headers=headers))
        assert "secret project" not in page
        assert "The caller didn’t have access to this vendor." in page
        assert logged.path("orgs:server-access") not in page, "a page for admins"
        assert browser.get(f"{path}?entry={foreign.id}", headers=headers).status_code == 404
    assert "the key secret project" in text(logged.owner().get(f"{logged.path(LOG)}?entry={mine.id}"))


def test_the_export_and_the_api_hold_ones_own_rows(logged: Site) -> None:
    browser, admin = logged.cast.client("member"), str(logged.cast.user("admin").id)
    found = browser.get(ask(logged).context["export_url"])
    assert [row["tool"] for row in csv.DictReader(io.StringIO(body_of(found).decode(), newline=""))] == ["fake_mine"]
    path = f"/api/audit/mine?org_id={logged.cast.org.id}"
    for query in ("", f"&user_id={admin}", "&user_id=ada", f"&user_id={admin}&user_id=x"):
        (entry,) = browser.get(path + query).json()["entries"]
        assert (entry["tool"], "credential" in entry) == ("fake_mine", False)
        assert body_of(browser.get(f"{path}{query}&format=csv")).count(b"hush") == 0
    assert browser.get(f"/api/audit?org_id={logged.cast.org.id}").status_code == 403


def test_older_pages_are_reached(site: Site) -> None:
    add_calls(site.cast.org.id, 60, user_id=str(site.cast.user("member").id))
    first = ask(site)
    older = site.cast.client("member").get(site.path(PAGE) + first.context["older_url"])
    assert (len(tools(first)), len(tools(older))) == (50, 10)


def test_it_needs_the_plan_that_the_log_needs(logged: Site, settings: LazySettings) -> None:
    settings.BILLING_MODE = "manual"  # and nobody has paid
    answer = ask(logged)
    assert (answer.status_code, "fake_mine" in text(answer)) == (402, False)
    assert logged.cast.client("member").get(f"/api/audit/mine?org_id={logged.cast.org.id}").status_code == 402
    assert (
        logged.path(PAGE)
        not in text(logged.cast.client("member").get(logged.path("proxy_pages:home"))).partition('id="calls"')[2]
    ), "no link where the page would refuse"


def test_members_find_it_and_admins_have_calls(logged: Site) -> None:
    home = logged.cast.client("member").get(logged.path("proxy_pages:home"))
    assert text(home).count(f'href="{logged.path(PAGE)}"') >= 2, "from the navigation and from Your calls"

    def labels(who: str) -> list[str]:
        nav = logged.cast.client(who).get(logged.path("proxy_pages:home")).context["nav"]
        return [str(item["label"]) for section in nav for item in section["items"] if "alls" in str(item["label"])]

    assert (labels("member"), labels("admin"), labels("owner")) == (["My calls"], ["Calls"], ["Calls"])
    assert f'href="{logged.path(PAGE)}"' in text(logged.owner().get(logged.path(LOG)))


def test_a_full_page_is_light_and_its_script_gets_every_suggestion(
    site: Site, django_assert_max_num_queries: Any
) -> None:
    org = site.cast.org.id
    for number in range(200):
        add_call(
            org,
            user_id=f"svc:{org}:svc_{number:024}",
            user_label=f"Night shift agent {number}",
            vendor="fake",
            tool=f"fake_list_devices_{number}",
            status="error",
            error_code="tool_error",
        )
    for number in range(50):
        add_call(org, user_id=str(site.cast.user("owner").id), vendor=f"vendor-{number}", tool="x")
    browser, path = site.owner(), site.path(LOG)
    with django_assert_max_num_queries(15):
        answer = browser.get(path, {"vendor": "fake"})
    assert (len(answer.context["rows"]), len(answer.content) <= 64 * 1024) == (50, True), len(answer.content)
    first, every = text(answer), text(browser.get(f"{path}?suggestions", headers={"HX-Request": "true"}))
    assert 'data-suggestions="?suggestions"' in first
    for name, count in (("people", 201), ("vendors", 51), ("tools", 200)):
        assert f'list="{name}"' in first
        assert (options(first, name), options(every, name)) == (20, count), name


def options(page: str, name: str) -> int:
    return page.partition(f'<datalist id="{name}">')[2].partition("</datalist>")[0].count("<option")


def test_a_short_list_is_whole_at_once(logged: Site) -> None:
    page = text(logged.owner().get(logged.path(LOG)))
    assert ("data-suggestions" in page, options(page, "people"), options(page, "tools")) == (False, 2, 2)
    other = logged.cast.client("member").get(f"{logged.path(PAGE)}?suggestions", headers={"HX-Request": "true"})
    assert ("fake_mine" in text(other), "hush" in text(other), "Ada" in text(other)) == (True, False, False)


@pytest.mark.parametrize(("who", "marked"), [("member", "My calls"), ("admin", "Calls")])
def test_the_navigation_marks_the_page(logged: Site, who: str, marked: str) -> None:
    sections = ask(logged, who=who).context["nav"]
    assert [item["label"] for section in sections for item in section["items"] if item["active"]] == [marked]
