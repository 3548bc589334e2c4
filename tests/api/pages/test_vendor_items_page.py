"""The pages of a vendor's resources and prompts: the editors of a role's and of an agent's lists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from audit.models import AdminAuditEntry
from oauth_ext.models import ServiceClientItemAllowlist
from orgs.models import ItemAllowlist
from tests.api.pages.conftest import Site, notices, text
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
    assert "All are allowed because there is no list." in loaded
    restrict_tools(site.cast.org, "fake_list")
    assert text(browser.get(path)).count("None are allowed: tools are limited to a list") == 2
    assert "None is allowed" not in text(browser.get(path, {"role": "owner"}))


def test_refusals_stay_on_the_page(site: Site, vendor: ItemVendor) -> None:
    vendor.api_key = "another"
    answer = site.cast.client("admin").post(site.path(PAGE, "fake"))
    assert answer.status_code == 200
    assert "rejected the stored credentials" in text(answer)
    assert site.cast.client("member").post(site.path(PAGE, "fake")).status_code == 403
    assert site.cast.client("other_owner").post(site.path(PAGE, "fake")).status_code == 404
    assert site.cast.client("admin").post(site.path(PAGE, "nowhere")).status_code == 404


def role_path(site: Site) -> str:
    return f"{site.path(PAGE, 'fake')}?role=admin"


def agent_path(site: Site) -> str:
    return site.path("proxy_pages:client-items", site.tenant.client.client_id, "fake")


def save(site: Site, path: str, kind: str, *entries: str, who: str = "owner", **more: Any) -> Any:
    sent = {"action": "save", "kind": kind, "mode": "list", "entry": list(entries), "version": "", "role": "admin"}
    return site.cast.client(who).post(path, {**sent, **more}, follow=True)


def stored(kind: str) -> list[list[str]]:
    rows = (*ItemAllowlist.objects.filter(kind=kind), *ServiceClientItemAllowlist.objects.filter(kind=kind))
    return [row.entries for row in rows]


def version_in(page: Any, kind: str) -> str:
    return {each["kind"]: each["version"] for each in page.context["lists"]}[kind]


@pytest.mark.parametrize("path_of", [role_path, agent_path], ids=["role", "agent"])
def test_lists_are_saved_shown_and_removed(site: Site, vendor: ItemVendor, path_of: Any) -> None:
    path = path_of(site)
    answer = save(site, path, "resources", "test://static-text", typed="test://thing/{id}\n\n test://x \n")
    assert stored("resources") == [["test://static-text", "test://thing/{id}", "test://x"]]
    (notice,) = notices(answer)
    assert notice.endswith("resources on the list: 3.")
    assert "3 entries are allowed, and no others." in text(answer)
    assert stored("prompts") == []
    loaded = site.cast.client("owner").post(path, {"role": "admin"})
    checked = set(re.findall(r'name="entry" value="([^"]+)" id="[^"]+" checked', text(loaded)))
    assert checked == {"test://static-text", "test://thing/{id}"}
    assert re.search(r'name="typed"[^>]*>test://x</textarea>', text(loaded))
    conflict = save(site, path, "resources", "file:///notes.md")
    assert (conflict.status_code, len(stored("resources")[0])) == (409, 3)
    assert "changed this list while you were editing" in text(conflict)
    again = save(site, path, "resources", mode="all", version=version_in(loaded, "resources"))
    assert notices(again)[0].endswith("no list of resources.")
    assert stored("resources") == []
    events = AdminAuditEntry.objects.filter(event_type__startswith="item_access").order_by("id")
    assert [each.event_type for each in events] == ["item_access.updated", "item_access.cleared"]


@pytest.mark.parametrize("path_of", [role_path, agent_path], ids=["role", "agent"])
def test_an_empty_list_is_asked_about_once_more(site: Site, vendor: ItemVendor, path_of: Any) -> None:
    path = path_of(site)
    asked = save(site, path, "prompts")
    assert (asked.status_code, stored("prompts")) == (422, [])
    assert save(site, path, "prompts", confirm="empty").status_code == 200
    assert stored("prompts") == [[]]


@pytest.mark.parametrize("path_of", [role_path, agent_path], ids=["role", "agent"])
def test_bad_entries_stay_on_the_page(site: Site, vendor: ItemVendor, path_of: Any) -> None:
    answer = save(site, path_of(site), "resources", typed="{+any}")
    assert answer.status_code == 422
    assert "A template must begin with a scheme" in text(answer)
    assert "{+any}</textarea>" in text(answer)
    assert save(site, path_of(site), "tools", "x").status_code == 404
    assert stored("resources") == []


@pytest.mark.parametrize("path_of", [role_path, agent_path], ids=["role", "agent"])
@pytest.mark.parametrize(
    ("who", "reads", "writes"), [("admin", 200, 403), ("member", 403, 403), ("other_owner", 404, 404)]
)
def test_who_may(site: Site, vendor: ItemVendor, path_of: Any, who: str, reads: int, writes: int) -> None:
    assert site.cast.client(who).get(path_of(site)).status_code == reads
    assert save(site, path_of(site), "prompts", "greet", who=who).status_code == writes
    assert stored("prompts") == []


def test_each_editor_says_whom_its_lists_bind(site: Site, vendor: ItemVendor) -> None:
    assert "also limit agents" in text(site.owner().get(site.path(PAGE, "fake"), {"role": "member"}))
    assert "also limit agents" not in text(site.owner().get(role_path(site)))
    name = site.tenant.client.name
    assert f"These lists limit {name} only." in text(site.owner().get(agent_path(site)))
    tools = text(site.owner().get(site.path("proxy_pages:client-tools", site.tenant.client.client_id, "fake")))
    assert agent_path(site) in tools
