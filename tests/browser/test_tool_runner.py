"""The tool runner and Test connection as people use them, with and without scripts."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.looking import SCREENS, faults_in
from tests.browser.test_access_pages import discover
from tests.browser.test_pages import NewVisitor


@pytest.mark.parametrize("has_scripts", [True, False])
def test_a_run_shows_its_result_and_its_row_leads_back(visitor: NewVisitor, has_scripts: bool) -> None:
    someone = visitor(java_script_enabled=has_scripts)
    org = someone.found_organization("Nordwind")
    someone.has_acme(org)
    page = discover(someone, org)
    page.get_by_role("link", name="Open acme_list_devices").click()
    page.get_by_label("Limit").fill("none")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_text("Nothing was sent.")).to_be_visible()
    page.get_by_label("Limit").fill("2")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_role("heading", name="The tool responded")).to_be_visible()
    expect(page.locator("#run-result tbody tr")).to_have_count(2)
    if has_scripts:
        assert not faults_in(page, SCREENS)

    page.get_by_role("link", name="This call in the log").click()
    expect(page.locator(".table-log > tbody > tr")).to_have_count(1)
    page.locator(".row-details summary" if has_scripts else ".row-actions a").click()
    expect(page.get_by_text("Tool runner")).to_be_visible()
    page.get_by_role("link", name="Run it again").click()
    expect(page).to_have_url(re.compile(r"/tools/acme_list_devices\?from=log$"))
    expect(page.get_by_text("keep arguments, so enter them again")).to_be_visible()


@pytest.mark.parametrize("has_scripts", [True, False])
def test_each_vendor_is_tested(visitor: NewVisitor, has_scripts: bool) -> None:
    someone = visitor(java_script_enabled=has_scripts)
    org = someone.found_organization("Nordwind")
    someone.has_acme(org)
    page = someone.open(f"{org}/setup")
    page.get_by_role("link", name="Test connection").click()
    if not has_scripts:
        page.get_by_role("button", name="Test Acme RMM").click()
    expect(page.get_by_text("You can call 9 of 9 tools.")).to_be_visible()
    if has_scripts:
        assert not faults_in(page, SCREENS)
