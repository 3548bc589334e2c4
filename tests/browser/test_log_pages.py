"""The pages of both logs as people use them: live, by arrow keys, with an export that shows its progress."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

from playwright.sync_api import Route, expect

from tests.browser.conftest import Visitor, stop_clock
from tests.browser.looking import DARK_PHONE, DARK_WIDE, LIGHT_PHONE, LIGHT_WIDE, PHONE, faults_in, press
from tests.browser.test_pages import NewVisitor

TAIL_MS = 5_000


def organization_with_calls(someone: Visitor, calls: int = 3) -> tuple[str, str]:
    """The path of a new organization with an agent's calls, and the agent's key."""
    org = someone.found_organization("Nordwind")
    someone.has_acme(org)
    key = someone.agent_key(org)
    for _ in range(calls):
        assert someone.call_tool(key).status_code == 200
    return org, key


def test_live_counts_new_rows_and_moves_none(visitor: NewVisitor) -> None:
    someone = visitor()
    org, key = organization_with_calls(someone)
    page = someone.page
    stop_clock(page)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "limit=1" in request.url else None)
    someone.open(f"{org}/activity?tool=acme_whoami")
    live, rows = page.get_by_role("switch", name="Live"), page.locator(".table-log > tbody > tr")
    expect(live).to_have_attribute("aria-checked", "false")
    page.clock.run_for(3 * TAIL_MS)
    assert not asked, "off until it is switched on"

    live.click()
    expect(live).to_have_attribute("aria-checked", "true")
    for _ in range(2):
        someone.call_tool(key)
    someone.call_tool(key, "acme_fail")
    with page.expect_response(lambda answer: "limit=1" in answer.url):
        page.clock.run_for(TAIL_MS)
    fresh = page.get_by_role("link", name="2 new")
    expect(fresh).to_be_visible()
    expect(rows).to_have_count(3)
    assert len(asked) == 1
    assert "tool=acme_whoami" in asked[0]

    fresh.click()
    expect(rows).to_have_count(5)
    expect(live).to_have_attribute("aria-checked", "true")
    expect(page.get_by_role("link", name="new")).to_have_count(0)
    live.click()
    before = len(asked)
    page.clock.run_for(3 * TAIL_MS)
    assert len(asked) == before
    assert "#" not in page.url


def test_a_hidden_page_asks_nothing(visitor: NewVisitor) -> None:
    someone = visitor()
    org, _ = organization_with_calls(someone, calls=1)
    page = someone.page
    stop_clock(page)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "limit=1" in request.url else None)
    someone.open(f"{org}/activity/changes")
    page.get_by_role("switch", name="Live").click()
    page.evaluate("Object.defineProperty(document, 'hidden', { value: true, configurable: true })")
    page.clock.run_for(3 * TAIL_MS)
    assert not asked
    page.evaluate("delete document.hidden")
    with page.expect_response(lambda answer: "limit=1" in answer.url):
        page.clock.run_for(TAIL_MS)


def test_an_export_shows_its_progress_and_is_saved(visitor: NewVisitor, tmp_path: Path) -> None:
    someone = visitor()
    org, _ = organization_with_calls(someone)
    page = someone.open(f"{org}/activity?tool=acme_whoami")
    with page.expect_download() as download:
        page.get_by_role("link", name="Export 3 calls").click()
    expect(page.locator("[data-export-text]")).to_have_text("3 rows exported.")
    expect(page.get_by_role("button", name="Cancel export")).to_be_hidden()
    assert re.fullmatch(r"audit-\d{4}-\d\d-\d\d\.csv", download.value.suggested_filename)
    download.value.save_as(tmp_path / "saved.csv")
    rows = list(csv.DictReader((tmp_path / "saved.csv").read_text().splitlines()))
    assert [row["tool"] for row in rows] == ["acme_whoami"] * 3
    assert page.url.endswith("/activity?tool=acme_whoami")


def test_an_export_can_be_cancelled_and_says_why_it_was_refused(visitor: NewVisitor) -> None:
    someone = visitor()
    org, _ = organization_with_calls(someone, calls=1)
    held: list[Route] = []
    page = someone.open(f"{org}/activity")
    page.route("**/api/audit?*format=csv*", lambda route: held.append(route))
    export = page.get_by_role("link", name="Export 1 call")
    export.click()
    expect(page.get_by_role("progressbar", name="Export")).to_be_visible()
    page.get_by_role("button", name="Cancel export").click()
    expect(page.locator("[data-export-text]")).to_have_text("Export canceled.")

    page.unroute("**/api/audit?*format=csv*")
    refusal = {"error": "rate_limited", "message": "Other exports of this organization are still running."}
    page.route(
        "**/api/audit?*format=csv*",
        lambda route: route.fulfill(status=429, content_type="application/json", body=json.dumps(refusal)),
    )
    export.click()
    expect(page.locator("[data-export-text]")).to_have_text(refusal["message"])
    refused = [each for each in someone.watch.problems if "429" in each]
    assert refused
    someone.watch.problems[:] = [each for each in someone.watch.problems if each not in refused]


def test_the_drawer_by_keyboard_and_as_json(visitor: NewVisitor) -> None:
    someone = visitor(permissions=["clipboard-read", "clipboard-write"])
    org, key = organization_with_calls(someone, calls=1)
    someone.call_tool(key, "acme_fail")
    stop_clock(someone.page)  # the button says for two seconds that it has copied
    page = someone.open(f"{org}/activity")
    page.locator(".row-details > summary").first.click()
    opened = page.locator("[data-drawer][open]")
    expect(opened.get_by_role("heading")).to_have_text("acme_fail")
    page.keyboard.press("ArrowUp")
    expect(opened.get_by_role("heading")).to_have_text("acme_fail")
    page.keyboard.press("ArrowDown")
    expect(opened).to_have_count(1)
    expect(opened.get_by_role("heading")).to_have_text("acme_whoami")
    expect(opened.locator("summary")).to_be_focused()

    opened.get_by_role("button", name="Copy as JSON").click()
    expect(opened.get_by_role("button", name="Copied")).to_be_visible()
    copied = json.loads(page.evaluate("navigator.clipboard.readText()"))
    assert (copied["tool"], copied["status"]) == ("acme_whoami", "success")
    opened.get_by_role("link", name="Same request").click()
    expect(page.locator(".pill").filter(has_text=copied["requestId"])).to_be_visible()
    expect(page.locator(".table-log > tbody > tr")).to_have_count(1)

    someone.open(f"{org}/activity/changes?event_type=agent_key.created")
    page.locator(".row-details > summary").first.click()
    opened.get_by_role("button", name="Copy as JSON").click()
    expect(opened.get_by_role("button", name="Copied")).to_be_visible()
    assert json.loads(page.evaluate("navigator.clipboard.readText()"))["eventType"] == "agent_key.created"
    page.keyboard.press("Escape")
    expect(opened).to_have_count(0)


def test_details_that_do_not_load_leave_a_link(visitor: NewVisitor) -> None:
    someone = visitor()
    org, _ = organization_with_calls(someone, calls=1)
    page = someone.open(f"{org}/activity")
    page.route("**/activity?entry=*", lambda route: route.abort())
    page.locator(".row-details > summary").click()
    expect(page.locator("[data-live]").first).to_have_text(re.compile("The details didn’t load"))
    page.unroute("**/activity?entry=*")
    page.get_by_role("link", name="Show all details").click()
    expect(page.locator("[data-drawer][open]").get_by_role("heading")).to_have_text("acme_whoami")
    expect(page.get_by_role("button", name="Copy as JSON")).to_be_visible()
    failed = [each for each in someone.watch.problems if "entry=" in each or "ERR_FAILED" in each]
    assert failed
    someone.watch.problems[:] = [each for each in someone.watch.problems if each not in failed]


def test_without_scripts(visitor: NewVisitor, tmp_path: Path) -> None:
    someone = visitor(java_script_enabled=False)
    org, _ = organization_with_calls(someone)
    page = someone.open(f"{org}/activity")
    expect(page.get_by_role("switch")).to_have_count(0)
    expect(page.get_by_role("button", name="Copy as JSON")).to_have_count(0)
    page.get_by_role("link", name="Details").first.click()
    expect(page.locator(".drawer")).to_contain_text("Nearby")
    expect(page.get_by_role("button", name="Copy as JSON")).to_have_count(0)
    page.locator(".row-details > summary").click()
    page.get_by_role("link", name="Newest").click()
    expect(page.locator(".table-log > tbody > tr")).to_have_count(3)
    page.get_by_label("Who", exact=True).fill("triage bot")
    page.get_by_role("button", name="Filter").click()
    expect(page.locator(".pill").filter(has_text="Who: Triage bot")).to_be_visible()
    page.get_by_role("link", name="Last hour").click()
    expect(page.locator(".pills > .pill")).to_have_count(2)
    with page.expect_download() as download:
        page.get_by_role("link", name="Export 3 calls").click()
    download.value.save_as(tmp_path / "saved.csv")
    assert len((tmp_path / "saved.csv").read_text().splitlines()) == 4


def test_every_page_is_accessible(visitor: NewVisitor, tmp_path: Path) -> None:
    someone = visitor(viewport={"width": PHONE, "height": 844})
    page, found = someone.page, []
    views = (LIGHT_WIDE, DARK_WIDE, LIGHT_PHONE, DARK_PHONE)
    org = someone.found_organization("Nordwind")
    for path in ("/activity", "/activity/changes?event_type=team.created"):
        found += faults_in(someone.open(f"{org}{path}"), views)
    someone.has_acme(org)
    key = someone.agent_key(org)
    for tool in ("acme_whoami", "acme_fail", "acme_unknown"):
        someone.call_tool(key, tool)
    page.context.request.patch(f"{someone.base}/api{org}/settings", data={"defaultServerAccess": "all"})
    paths = [
        "/activity",
        "/activity?period=7d&tool=acme_whoami",
        "/activity?start=2026-01-01T08:00:00Z&status=nothing",
        "/activity/changes",
        "/activity/changes?event_type=organization.settings_updated",
    ]
    for number, path in enumerate(paths):
        someone.open(f"{org}{path}")
        if page.locator(".export-help").count():
            press(page.locator(".export-help > summary"))
            press(page.get_by_role("switch", name="Live"))
        found += faults_in(page, views, pictures=tmp_path / f"{number}")
        if page.locator(".row-details").count():
            press(page.locator(".row-details > summary").first)
            found += faults_in(page, views, pictures=tmp_path / f"{number}-drawer")
    assert not found, "\n".join(found)
