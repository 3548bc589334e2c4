"""A management token from the profile to the form that sends a request with it, and to its end."""

from __future__ import annotations

import os
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.browser.looking import faults
from tests.browser.test_pages import NewVisitor

NARROW = {"width": 390, "height": 844}


def look(page: Page, name: str) -> None:
    """No fault of the page; with PICTURES, a picture at two widths."""
    assert not faults(page)
    folder = os.environ.get("PICTURES")
    if folder:
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)
        wide = page.viewport_size
        page.set_viewport_size(NARROW)  # type: ignore[arg-type]
        page.screenshot(path=Path(folder) / f"{name}-390.png", full_page=True)
        if wide is not None:
            page.set_viewport_size(wide)


def test_a_token_is_made_tried_and_revoked(visitor: NewVisitor) -> None:
    owner = visitor()
    org = owner.found_organization("Nordwind")
    page = owner.open("/profile/tokens/new")
    page.get_by_label("Name").fill("Terraform")
    page.get_by_label("Read and change").check()
    look(page, "new")
    page.get_by_role("button", name="Create token").click()
    token = page.get_by_role("textbox", name="Management token").input_value()
    assert token.startswith("gwt_")
    look(page, "made")
    page.get_by_role("link", name="I have saved it").click()
    expect(page.get_by_role("listitem").filter(has_text="Terraform")).to_be_visible()
    look(page, "profile")

    page = owner.open("/docs/api/create_team/try")
    page.get_by_label("org_id").fill(org.rpartition("/")[2])
    page.get_by_label("Management token").fill(token)
    page.get_by_role("button", name="Send request").click()
    expect(page.get_by_role("status").filter(has_text="201")).to_be_visible()
    look(page, "try")
    page = owner.open("/docs/api/list_teams/try")
    page.get_by_label("org_id").fill(org.rpartition("/")[2])
    page.get_by_role("button", name="Send request").click()
    expect(page.get_by_text('"name": "Night shift"')).to_be_visible()

    page = owner.open("/profile")
    page.get_by_role("link", name="Revoke Terraform").click()
    look(page, "revoke")
    page.get_by_role("button", name="Revoke token").click()
    expect(page.get_by_text("Terraform is revoked.")).to_be_visible()
