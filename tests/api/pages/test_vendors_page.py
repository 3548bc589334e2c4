"""The list of vendors: trouble first, in words, and renewed without being a nuisance."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.staticfiles import finders

from gateway.coordination.sqlite_store import SQLiteStore
from gateway.lib import clock
from proxy.control_plane.health.states import HealthStatus
from proxy.vendors.shared_circuits import SharedCircuit, publish
from tests.api.pages.conftest import INERT, SCRIPT, Site, text
from tests.factories.catalog_text import load_catalog
from tests.factories.health import connected_vendor, put_health

CATALOG_OF_KINDS = """
[[vendor]]
slug = "signed"
name = "Signed"
url = "https://signed.example/mcp"
docs_url = "https://vendor.example/docs"
[vendor.oauth]
[[vendor]]
slug = "open"
name = "Open"
url = "https://open.example/mcp"
docs_url = "https://vendor.example/docs"
[[vendor]]
slug = "keyed"
name = "Keyed"
url = "https://keyed.example/mcp"
docs_url = "https://vendor.example/docs"
[[vendor.headers]]
name = "X-Api-Key"
value = "{apiKey}"
[[vendor.fields]]
name = "apiKey"
label = "API key"
secret = true
required = true
"""


@pytest.fixture
def troubled(site: Site, shared: SQLiteStore) -> Site:
    """One vendor in each state, and one at an address of the customer."""
    for slug in ("alpha", "beta", "gamma", "delta", "epsilon", "hosted"):
        connected_vendor(site.cast.org, slug, hosted=slug == "hosted")
    put_health(shared, "alpha", HealthStatus.HEALTHY, age_s=24)
    put_health(shared, "beta", HealthStatus.REACHABLE, version="")
    put_health(shared, "gamma", HealthStatus.DOWN, error_detail="timed out after 5 s, 3 failures in a row")
    put_health(shared, "delta", HealthStatus.DEGRADED, error_detail="slow: answered after 2500 ms")
    return site


def page_of(site: Site, who: str = "member", **headers: str) -> Any:
    return site.cast.client(who).get(site.path("proxy_pages:vendors"), headers=headers)


def table(page: str) -> list[list[str]]:
    """The rows' cells as a person reads them."""
    rows = re.findall(r"<tr>(.*?)</tr>", page.partition("<tbody>")[2].partition("</tbody>")[0], flags=re.S)
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, flags=re.S) for row in rows]
    return [[re.sub(r"<[^>]+>", "", cell).strip() for cell in row] for row in cells]


def test_the_worst_comes_first_and_every_state_has_its_words(troubled: Site) -> None:
    page = text(page_of(troubled))
    rows = table(page)
    assert [(row[0], row[1]) for row in rows] == [
        ("Gamma", "Not responding"),
        ("Delta", "Degraded"),
        ("Epsilon", "Checking…"),
        ("Hosted", "Checking…"),
        ("Beta", "Responding"),
        ("Alpha", "Connected"),
    ]
    assert rows[0][2:5] == ["Not verified", "not loaded", "12 ms"]
    assert rows[0][5] == "timed out after 5 s, 3 failures in a row"
    assert rows[3][4] == "–"
    assert rows[3][5].startswith("Self-hosted")
    assert [row[5] for row in rows[4:]] == ["–", "–"]
    assert "1 not responding, 1 degraded, 2 healthy, 1 being checked, 1 not monitored" in page
    assert re.search(r"; checked <time[^>]*>2[45] s ago</time>, next check in about 3[56] s", page)
    assert "Collecting first results" not in page


def test_calls_that_are_held_back_are_told_beside_the_detail(troubled: Site, shared: SQLiteStore) -> None:
    now = clock.now()
    publish(shared, "gamma", SharedCircuit(6, now, now + timedelta(seconds=30)))
    publish(shared, "alpha", SharedCircuit(5, now, now))
    details = {row[0]: row[5] for row in table(text(page_of(troubled)))}
    held_back = "Calls are paused: the vendor could not be reached"
    assert details["Gamma"].startswith("timed out after 5 s, 3 failures in a row")
    assert re.search(held_back + r" 6 times in a row. Next attempt: \d\d:\d\d:\d\d UTC.", details["Gamma"])
    assert "paused" not in details["Alpha"]
    assert (
        "The vendor could not be reached 5 times in a row. The next call tries again; if it succeeds, calls resume."
    ) in details["Alpha"]
    assert details["Beta"] == "–"


def test_what_is_odd_about_an_answer_is_told_beside_the_state(troubled: Site, shared: SQLiteStore) -> None:
    put_health(shared, "alpha", HealthStatus.HEALTHY, remark="answered initialize with HTTP 404")
    put_health(shared, "delta", HealthStatus.DEGRADED, error_detail="slow", remark="answered initialize with HTTP 404")
    rows = {row[0]: row for row in table(text(page_of(troubled)))}
    assert (rows["Alpha"][1], rows["Alpha"][5]) == ("Connected", "answered initialize with HTTP 404")
    assert rows["Delta"][5] == "slow; answered initialize with HTTP 404"
    assert rows["Beta"][5] == "–"
    assert "Answers as it should" not in text(page_of(troubled))


def test_no_state_is_told_by_colour_alone(troubled: Site) -> None:
    page = text(page_of(troubled))
    for icon, label in (
        ("circle-check", "Connected"),
        ("circle-dot", "Responding"),
        ("alert-triangle", "Degraded"),
        ("circle-x", "Not responding"),
        ("circle-dashed", "Checking…"),
    ):
        assert re.search(
            rf'<span class="badge badge-\w+"><svg class="icon icon-{icon}"[^>]*>.*?</svg> {label}</span>', page
        )
    assert "Responds and requires credentials. Tool calls should work." in page
    assert "Waiting for the first check." in page


def test_a_monitor_that_has_just_begun_is_no_wall_of_warnings(site: Site, shared: SQLiteStore) -> None:
    connected_vendor(site.cast.org, "alpha")
    page = text(page_of(site))
    assert "Collecting first results (up to 60 s)." in page
    assert "1 being checked" in page
    assert "checked <time" not in page


@pytest.mark.parametrize(("who", "may_connect"), [("admin", True), ("member", False)])
def test_without_a_vendor_there_is_one_next_step(site: Site, shared: SQLiteStore, who: str, may_connect: bool) -> None:
    page = text(page_of(site, who))
    assert "No vendors yet" in page
    assert ("Add a vendor</a>" in page) is may_connect
    assert "hx-get" not in page
    assert "htmx-2" not in page


def test_the_table_renews_itself_and_only_a_change_is_announced(troubled: Site, shared: SQLiteStore) -> None:
    page = text(page_of(troubled))
    found = re.search(r'hx-get="([^"]+)" hx-trigger="every 30s" hx-swap="outerHTML"', page)
    assert found is not None
    address = found[1].replace("&amp;", "&")
    browser = troubled.cast.client("member")
    same = browser.get(address, headers={"HX-Request": "true"})
    assert same.status_code == 200
    assert text(same).startswith('<div id="vendor-health"')
    assert "health-news" not in text(same)
    assert table(text(same)) == table(page)
    put_health(shared, "gamma", HealthStatus.HEALTHY)
    changed = text(browser.get(address, headers={"HX-Request": "true"}))
    assert 'id="health-news" class="visually-hidden" role="status" aria-live="polite" hx-swap-oob="true"' in changed
    assert "1 degraded, 3 healthy" in changed
    assert address not in changed


def test_a_session_that_ended_is_no_table(troubled: Site) -> None:
    answer = page_of(troubled, "nobody", **{"HX-Request": "true"})
    assert (answer.status_code, answer["HX-Refresh"], answer.content) == (204, "true", b"")
    assert page_of(troubled, "stranger", **{"HX-Request": "true"}).status_code == 404


def test_what_vendors_say_of_themselves_is_text(site: Site, shared: SQLiteStore) -> None:
    connected_vendor(site.cast.org, "alpha")
    put_health(shared, "alpha", HealthStatus.DEGRADED, version=SCRIPT, error_detail=SCRIPT)
    page = text(page_of(site))
    assert page.count(INERT) == 1
    assert SCRIPT not in page


def test_the_script_is_served_from_here_and_may_not_evaluate(troubled: Site) -> None:
    page = text(page_of(troubled))
    assert '"allowEval":false' in page
    assert '<script src="/static/django_htmx/htmx-2.min.js" defer></script>' in page
    assert finders.find("django_htmx/htmx-2.min.js")


def test_the_catalog_says_how_a_vendor_is_connected(site: Site) -> None:
    load_catalog(CATALOG_OF_KINDS, "test catalog")
    page = text(site.cast.client("admin").get(site.path("credentials:catalog")))
    found = re.findall(r"<h3><a[^>]*>(\w+)</a></h3>\s*<p[^>]*>(.*?)</p>", page)
    expected = {"Signed": "Sign in at the vendor", "Open": "No credentials needed", "Keyed": "1 field"}
    assert {name: way for name, way in found if name in expected} == expected
