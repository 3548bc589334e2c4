"""Log shipping as people use it: the wizard, a test, a pause, a deletion; without scripts, small and dark."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visitor
from tests.browser.looking import LIGHT_NARROW, PHONE, SCREENS, faults_in
from tests.browser.test_pages import NewVisitor


def said(page: Page, text: str, role: str = "status") -> None:
    expect(page.get_by_role(role).filter(has_text=text)).to_be_visible()  # type: ignore[arg-type]


def make_destination(someone: Visitor, org: str, name: str = "Security team") -> str:
    """Its path, with its page open. The address is the demo vendor's, which takes no records."""
    page = someone.open(f"{org}/activity/log-shipping")
    page.get_by_role("link", name="New destination").click()
    page.get_by_role("link", name="Webhook").click()
    page.get_by_label("Name").fill(name)
    page.get_by_label("Address").fill(someone.ready["vendor_url"])
    page.get_by_label("Signing secret", exact=False).first.fill("a-signing-secret")
    page.get_by_role("button", name="Save destination").click()
    expect(page.get_by_role("heading", name=name, level=1)).to_be_visible()
    return page.url.removeprefix(someone.base)


@pytest.mark.parametrize("scripts", [True, False])
def test_from_the_wizard_to_the_deletion(visitor: NewVisitor, scripts: bool) -> None:
    someone = visitor(java_script_enabled=scripts)
    org = someone.found_organization("Nordwind")
    make_destination(someone, org)
    page = someone.page
    said(page, "Security team receives all records from now on.")
    page.get_by_role("button", name="Send test to Security team").click()
    said(page, "Security team didn’t accept the test record: 4", "alert")
    page.get_by_role("button", name="Pause Security team").click()
    said(page, "Security team is paused.")
    expect(page.get_by_role("heading", name="paused")).to_be_visible()
    page.get_by_role("button", name="Resume Security team").click()
    said(page, "Security team has resumed.")
    page.get_by_label("From (UTC)").fill("2026-01-31T08:00")
    page.get_by_role("button", name="Replay from this time").click()
    said(page, "Security team will receive all records since that time again.")
    page.get_by_label("Name", exact=True).fill("Night shift")
    page.get_by_role("button", name="Save", exact=True).click()
    said(page, "Night shift saved.")
    page.get_by_role("link", name="Delete Night shift").click()
    page.get_by_label("Type Night shift to confirm").fill("Night shift")
    page.get_by_role("button", name="Delete destination").click()
    said(page, "Night shift was deleted.")
    expect(page.get_by_text("No destinations yet")).to_be_visible()


def test_every_page_is_accessible_and_fits(visitor: NewVisitor) -> None:
    someone = visitor(viewport={"width": PHONE, "height": 760})
    org = someone.found_organization("Nordwind")
    views = (*SCREENS, LIGHT_NARROW)
    found = faults_in(someone.open(f"{org}/activity/log-shipping"), views)
    one = make_destination(someone, org, "Security team of the northern office")
    page = someone.page
    page.get_by_role("button", name="Send test").click()
    expect(page.get_by_role("alert")).to_be_visible()
    found += faults_in(page, views)
    for path in (
        f"{org}/activity/log-shipping",
        f"{org}/activity/log-shipping/new",
        f"{org}/activity/log-shipping/new/platform_g",
        f"{one}/delete",
    ):
        found += faults_in(someone.open(path), views)
    someone.open(f"{org}/activity/log-shipping/new/platform_g").get_by_role("button", name="Save destination").click()
    expect(page.get_by_role("alert")).to_be_visible()
    found += faults_in(page, views)
    assert not found, "\n".join(found)
