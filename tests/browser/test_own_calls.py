"""My calls as a member uses it, and the suggestions in the filters of the log."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visitor
from tests.browser.every_page import MEMBER, member_id
from tests.browser.looking import DARK_PHONE, LIGHT_WIDE, faults_in, show
from tests.browser.test_access_pages import discover
from tests.browser.test_pages import NewVisitor

VIEWS = (LIGHT_WIDE, DARK_PHONE)


def organization_with_a_member(owner: Visitor, member: Visitor) -> str:
    """The path of a new organization: an agent called, and the member called once and may see no one else's call."""
    org = owner.found_organization("Nordwind")
    owner.has_acme(org)
    discover(owner, org)
    assert owner.call_tool(owner.agent_key(org)).status_code == 200
    member.sign_in(name=MEMBER)
    member.post(owner.invitation(org))
    answer = owner.page.context.request.put(
        f"{owner.base}/api{org}/members/{member_id(owner, org, MEMBER)}/server-access/acme"
    )
    assert answer.ok, answer.text()
    page = member.open(f"{org}/vendors/acme/tools/acme_list_devices")
    page.get_by_label("Limit").fill("2")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_role("heading", name="The tool responded")).to_be_visible()
    return org


def rows(page: Page) -> list[str]:
    return page.locator(".table-log > tbody > tr code").all_inner_texts()


@pytest.mark.parametrize("has_scripts", [True, False])
def test_a_member_finds_and_exports_their_own_calls(visitor: NewVisitor, tmp_path: Path, has_scripts: bool) -> None:
    owner, member = visitor(), visitor(java_script_enabled=has_scripts)
    org = organization_with_a_member(owner, member)
    page = member.open(org)
    page.get_by_role("main").get_by_role("link", name="My calls").click()
    expect(page.get_by_role("heading", level=1, name="My calls")).to_be_visible()
    expect(page.get_by_role("link", name="Activity")).to_be_visible()
    expect(page.get_by_label("Who", exact=True)).to_have_count(0)
    assert rows(page) == ["acme_list_devices"]
    if has_scripts:
        assert not faults_in(page, VIEWS, tmp_path / "own calls")
        for view in VIEWS:
            show(page, view)
            page.screenshot(path=tmp_path / f"own {view.theme}.png", full_page=True)
        show(page, LIGHT_WIDE)
    if has_scripts:
        page.locator(".row-details > summary").click()
        expect(page.locator("[data-drawer][open] .drawer")).to_contain_text("Request ID")
        assert not faults_in(page, VIEWS, tmp_path / "own details")
        page.keyboard.press("Escape")  # the drawer lies over the export
        expect(page.locator("[data-drawer][open]")).to_have_count(0)
    else:
        page.get_by_role("link", name="Details").click()
        expect(page.locator(".drawer")).to_contain_text("Request ID")
        page = member.open(f"{org}/activity/mine")
    with page.expect_download() as download:
        page.get_by_role("link", name="Export 1 call").click()
    download.value.save_as(tmp_path / "saved.csv")
    saved = csv.DictReader((tmp_path / "saved.csv").read_text().splitlines())
    assert [row["tool"] for row in saved] == ["acme_list_devices"]

    page.get_by_label("Vendor", exact=True).fill("acme rmm")
    page.get_by_role("button", name="Filter", exact=True).click()
    expect(page.locator(".pill").filter(has_text="Vendor: Acme RMM")).to_be_visible()
    assert rows(page) == ["acme_list_devices"]


@pytest.mark.parametrize("has_scripts", [True, False])
def test_the_log_suggests_vendors_tools_and_people(visitor: NewVisitor, tmp_path: Path, has_scripts: bool) -> None:
    owner, member = visitor(java_script_enabled=True), visitor()
    org = organization_with_a_member(owner, member)
    seen = owner
    if not has_scripts:
        seen = visitor(java_script_enabled=False)
        seen.page.context.add_cookies(owner.page.context.cookies())
    page = seen.open(f"{org}/activity")
    for name, suggested in (("people", MEMBER), ("vendors", "Acme RMM"), ("tools", "acme_list_devices")):
        expect(page.locator(f"#{name} option[value='{suggested}']")).to_have_count(1)
    page.get_by_label("Who", exact=True).fill(MEMBER)
    page.get_by_label("Vendor", exact=True).fill("Acme RMM")
    page.get_by_label("Tool", exact=True).fill("acme_list_devices")
    page.get_by_role("button", name="Filter", exact=True).click()
    expect(page.locator(".pills > .pill")).to_have_count(3)
    expect(page.get_by_label("Vendor", exact=True)).to_have_value("Acme RMM")
    assert rows(page) == ["acme_list_devices"]
    if has_scripts:
        assert not faults_in(page, VIEWS, tmp_path / "log")
        for view in VIEWS:
            show(page, view)
            page.screenshot(path=tmp_path / f"log {view.theme}.png", full_page=True)
    page.get_by_role("main").get_by_role("link", name="My calls").click()
    expect(page.get_by_text("No calls yet")).to_be_visible()


def test_a_field_that_is_used_gets_all_suggestions(visitor: NewVisitor) -> None:
    owner = visitor()
    org = owner.found_organization("Nordwind")
    owner.has_acme(org)
    key = owner.agent_key(org)
    for number in range(22):
        owner.call_tool(key, f"acme_tool_{number:02}")
    page = owner.open(f"{org}/activity")
    suggested = page.locator("#tools option")
    expect(suggested).to_have_count(20)
    page.get_by_label("Tool", exact=True).focus()
    expect(suggested).to_have_count(22)
    page.get_by_label("Tool", exact=True).fill("acme_tool_21")
    page.get_by_role("button", name="Filter", exact=True).click()
    assert rows(page)[0] == "acme_tool_21"
