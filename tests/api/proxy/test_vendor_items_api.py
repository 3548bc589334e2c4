"""GET /api/orgs/:orgId/tool-access/:vendor/items."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.factories.api import Api
from tests.factories.cast import Cast
from tests.factories.live_vendor import vendor_in_thread
from tests.factories.tenant import connect, load_vendor
from tests.fakes.item_vendor import ItemVendor

PATH = "/orgs/{org}/tool-access/fake/items"


@pytest.fixture
def vendor(cast: Cast) -> Iterator[ItemVendor]:
    with vendor_in_thread(kind=ItemVendor) as running:
        assert isinstance(running, ItemVendor)
        load_vendor(running.url)
        yield running


def test_the_vendor_is_asked_each_time(api: Api, vendor: ItemVendor) -> None:
    connect(api.cast.org, api.cast.user("owner"))
    found = api.get("admin", PATH)
    assert found["resources"][0] == {
        "own": "test://static-text",
        "exposed": "fake+test://static-text",
        "name": "Static text",
        "title": None,
        "description": None,
        "mimeType": "text/plain",
        "arguments": [],
    }
    assert [each["exposed"] for each in found["resources"]][2] == "ui://fake+board/main"
    assert [each["own"] for each in found["templates"]] == ["test://thing/{id}"]
    (prompt,) = found["prompts"]
    assert (prompt["own"], prompt["exposed"], prompt["arguments"]) == ("greet", "fake_greet", ["who"])
    assert found["allowedRoles"] == ["member", "admin", "owner"]
    vendor.lists["prompts"] = []
    api.send("owner", "PUT", "/orgs/{org}/tool-access/fake/member", {"tools": ["fake_list"]})
    again = api.get("admin", PATH)
    assert (again["prompts"], again["allowedRoles"]) == ([], ["admin", "owner"])


def test_a_vendor_with_tools_alone_has_empty_lists(api: Api, vendor: ItemVendor) -> None:
    connect(api.cast.org, api.cast.user("owner"))
    vendor.capabilities = {"tools": {}}
    found = api.get("admin", PATH)
    assert found["resources"] == found["templates"] == found["prompts"] == []
    assert not any(method.endswith("/list") for method in vendor.seen)


def test_refusals(api: Api, vendor: ItemVendor) -> None:
    assert api.refused("admin", "GET", PATH) == (403, "no_credentials")
    connect(api.cast.other_org, api.cast.user("other_owner"))
    assert api.refused("admin", "GET", PATH) == (403, "no_credentials"), "another organization's key serves nobody here"
    connect(api.cast.org, api.cast.user("owner"), apiKey="wrong")
    assert api.refused("admin", "GET", PATH) == (502, "vendor_rejected_credentials")
    assert api.refused("member", "GET", PATH)[0] == 403
    assert api.refused("admin", "GET", "/orgs/{org}/tool-access/nowhere/items") == (404, "not_found")
