"""The search of an organization by keyboard alone, with and without scripts."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.looking import faults
from tests.browser.test_pages import NewVisitor


def test_the_search_by_keyboard(visitor: NewVisitor) -> None:
    owner = visitor()
    org = owner.found_organization("Nordwind")
    owner.has_acme(org)
    page = owner.open(org)
    page.keyboard.press("Control+k")
    field = page.get_by_role("combobox", name="Search")
    expect(field).to_be_focused()
    expect(page.get_by_role("option").first).to_have_attribute("aria-selected", "true")
    page.keyboard.type("acme")
    expect(page.get_by_role("option")).to_have_count(1)
    assert not faults(page)
    page.keyboard.press("Escape")
    expect(field).to_have_count(0)
    page.keyboard.press("Control+k")
    page.keyboard.type("people")
    expect(page.get_by_role("option", name="Members People")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("option", name="Teams People")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Members", level=1)).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard")).to_be_visible()
    assert not faults(page)
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Keyboard")).to_have_count(0)


def test_the_search_without_scripts(visitor: NewVisitor) -> None:
    owner = visitor(java_script_enabled=False)
    org = owner.found_organization("Nordwind")
    page = owner.open(org)
    page.get_by_role("link", name="Search", exact=True).click()
    page.get_by_role("searchbox", name="Search").fill("teams")
    page.get_by_role("main").get_by_role("button", name="Search", exact=True).click()
    page.get_by_role("main").get_by_role("link", name="Teams").click()
    expect(page.get_by_role("heading", name="Teams", level=1)).to_be_visible()
