"""The documents as people read them: found from a page, in both themes, on a small screen, without scripts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visitor
from tests.browser.looking import DARK_PHONE, LIGHT_NARROW, SCREENS, Looker

NewVisitor = Callable[..., Visitor]
# One of each kind: text and picture, tables, many parts, a client, a long reference, results, none, and no page.
PATHS = (
    "/docs",
    "/docs/concepts",
    "/docs/limits",
    "/docs/errors",
    "/docs/clients/cursor",
    "/docs/recipes/connect-your-own-vendor",
    "/docs/log-shipping",
    "/docs/self-hosting/install",
    "/docs/search?q=key",
    "/docs/search?q=zzzz",
    "/docs/migrate",
    "/docs/nowhere",
)


def test_documents_are_accessible_in_every_view(visitor: NewVisitor, tmp_path: Path) -> None:
    someone, looker = visitor(), Looker((*SCREENS, DARK_PHONE, LIGHT_NARROW), tmp_path)
    for path in PATHS:
        looker.look(someone.open(path), path.replace("/", "-"))
    assert not looker.found, "\n".join(looker.found)


@pytest.mark.parametrize("has_scripts", [True, False])
def test_from_a_page_to_the_answer(visitor: NewVisitor, has_scripts: bool) -> None:
    someone = visitor(java_script_enabled=has_scripts)
    page = someone.sign_in_by_form()
    page.get_by_role("link", name="Help with this page").click()
    page.wait_for_url("**/docs/first-steps")
    expect(page.get_by_role("heading", name="First steps", level=1)).to_be_visible()
    page.get_by_role("navigation", name="Documents").get_by_role("link", name="Help", exact=True).click()
    page.get_by_label("Search the documents").fill("vendor_timeout")
    page.get_by_role("button", name="Search").click()
    page.get_by_role("link", name="vendor_timeout").first.click()
    page.wait_for_url("**/docs/errors#vendor_timeout")
    expect(page.get_by_role("heading", name="vendor_timeout")).to_be_in_viewport()
    page.get_by_role("link", name="Next Limits and quotas").click()
    expect(page.get_by_role("heading", name="Limits and quotas", level=1)).to_be_visible()


@pytest.mark.parametrize("has_scripts", [True, False])
def test_on_a_phone_the_list_is_folded(visitor: NewVisitor, has_scripts: bool) -> None:
    someone = visitor(java_script_enabled=has_scripts, viewport={"width": 390, "height": 800})
    page = someone.open("/docs/errors")
    documents = page.get_by_role("navigation", name="Documents")
    limits = documents.get_by_role("link", name="Limits and quotas")
    expect(limits).to_be_hidden()
    documents.get_by_text("All documents").click()
    limits.click()
    page.wait_for_url("**/docs/limits")
