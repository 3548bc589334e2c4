"""The page of a vendor's resources and prompts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.api.pages.conftest import Site, text
from tests.factories.cast import Cast
from tests.factories.live_vendor import vendor_in_thread
from tests.factories.tenant import connect, load_vendor, restrict_tools
from tests.fakes.item_vendor import ItemVendor

PAGE = "proxy_pages:vendor-items"


@pytest.fixture
def vendor(cast: Cast) -> Iterator[ItemVendor]:
    with vendor_in_thread(kind=ItemVendor) as running:
        assert isinstance(running, ItemVendor)
        load_vendor(running.url)
        connect(cast.org, cast.user("owner"))
        yield running


def test_reading_asks_nobody_and_the_button_asks_the_vendor(site: Site, vendor: ItemVendor) -> None:
    vendor.lists["prompts"] = [{"name": "greet", "description": "<b>Greets</b>"}]
    browser, path = site.cast.client("admin"), site.path(PAGE, "fake")
    shown = text(browser.get(path))
    assert "Load resources and prompts" in shown
    assert sum(vendor.seen.values()) == 0
    loaded = text(browser.post(path))
    for expected in ("fake+test://static-text", "ui://fake+board/main", "fake+test://thing/{id}", "fake_greet"):
        assert expected in loaded
    assert "&lt;b&gt;Greets" in loaded
    assert "Every role with access" in loaded
    restrict_tools(site.cast.org, "fake_list")
    assert "here for: member" in text(browser.get(path))


def test_refusals_stay_on_the_page(site: Site, vendor: ItemVendor) -> None:
    vendor.api_key = "another"
    answer = site.cast.client("admin").post(site.path(PAGE, "fake"))
    assert answer.status_code == 200
    assert "rejected the stored credentials" in text(answer)
    assert site.cast.client("member").post(site.path(PAGE, "fake")).status_code == 403
    assert site.cast.client("other_owner").post(site.path(PAGE, "fake")).status_code == 404
    assert site.cast.client("admin").post(site.path(PAGE, "nowhere")).status_code == 404
