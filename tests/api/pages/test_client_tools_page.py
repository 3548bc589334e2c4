"""Allowed tools of one agent: the section on its page, the editor of a vendor's list, and its preview."""

from __future__ import annotations

import re
from typing import Any

import pytest

from oauth_ext.models import ServiceClientAllowlist
from oauth_ext.services.service_client_allowlists import set_tool_mode
from tests.api.pages.conftest import Site, notices, text
from tests.factories.tenant import connect, make_tenant, restrict_tools
from tests.fakes.vendor import FakeVendor

NAMES = {"fake_fail", "fake_list", "fake_write"}


@pytest.fixture
def vendor(site: Site, live_vendor: FakeVendor) -> FakeVendor:
    """`fake`, connected to the first organization, and its tools seen once."""
    connect(site.cast.org, site.cast.user("owner"))
    site.cast.client("admin").post(path(site), {"action": "discover"}, follow=True)
    return live_vendor


def path(site: Site) -> str:
    return site.path("proxy_pages:client-tools", site.tenant.client.client_id, "fake")


def own_page(site: Site) -> str:
    return site.path("oauth_pages:service-client-tools", str(site.tenant.client.id))


def open_page(site: Site, who: str = "owner", **query: str) -> Any:
    return site.cast.client(who).get(path(site), query)


def save(site: Site, *tools: str, who: str = "owner", mode: str = "list", **more: Any) -> Any:
    page = open_page(site)
    known = {name: page.context[name] for name in ("version", "fingerprint", "shown")}
    return site.cast.client(who).post(path(site), {"mode": mode, "tool": list(tools), **known, **more}, follow=True)


def stored(site: Site) -> list[str] | None:
    row = ServiceClientAllowlist.objects.filter(client=site.tenant.client, vendor="fake").first()
    return list(row.tools) if row else None


def ticked(page: Any) -> set[str]:
    return set(re.findall(r'name="tool" value="([^"]+)" id="[^"]+" checked', text(page)))


def test_a_list_is_saved_shown_and_cleared(site: Site, vendor: FakeVendor) -> None:
    name = site.tenant.client.name
    assert ticked(open_page(site)) == NAMES
    answer = save(site, "fake_list")
    assert notices(answer) == [f"Saved for {name}: 1 of 3 tools allowed (0 added, 2 removed)."]
    assert (stored(site), ticked(answer)) == (["fake_list"], {"fake_list"})
    assert "1 listed" in text(site.owner().get(own_page(site)))
    assert notices(save(site, mode="all")) == [f"Saved for {name}: all tools allowed (2 added, 0 removed)."]
    assert stored(site) is None
    assert path(site) in text(site.cast.client("admin").get(own_page(site)))


def test_an_empty_list_is_asked_about_once_more(site: Site, vendor: FakeVendor) -> None:
    assert save(site).status_code == 422
    assert stored(site) is None
    assert save(site, confirm="empty").status_code == 200
    assert stored(site) == []


def test_an_edit_that_began_before_another_one_is_refused(site: Site, vendor: FakeVendor) -> None:
    save(site, "fake_list")
    answer = save(site, "fake_write", version="")
    assert answer.status_code == 409
    assert stored(site) == ["fake_list"]


def test_each_editor_says_whom_its_list_binds(site: Site, vendor: FakeVendor) -> None:
    make_tenant(site.cast.other_org, site.cast.user("other_owner"), name="foreign bot")
    name, roles = site.tenant.client.name, site.path("proxy_pages:tool-access", "fake")
    by_role = text(site.owner().get(roles, {"role": "member"}))
    assert f"also limits these agents: {name}." in by_role
    assert "foreign bot" not in by_role
    assert "limits these agents" not in text(site.owner().get(roles, {"role": "admin"}))
    restrict_tools(site.cast.org, "fake_list")
    page = text(open_page(site))
    assert f"This list limits {name} only. The list for members also limits it: 1 listed." in page


def test_the_preview_shows_what_the_agent_sees(site: Site, vendor: FakeVendor) -> None:
    save(site, "fake_list", "fake_write")
    whose = {"actor": site.cast.user("owner"), "organization": site.cast.org, "client": site.tenant.client}

    def previewed() -> list[str]:
        return [name for name, _ in open_page(site, view="preview").context["preview"].tools]

    assert previewed() == ["fake_list", "fake_write"]
    set_tool_mode(**whose, mode="read_only")
    assert previewed() == ["fake_list"]
    assert "is read-only" in text(open_page(site))
    assert "This agent is read-only" in text(site.owner().get(own_page(site)))


@pytest.mark.parametrize(
    ("who", "reads", "writes"), [("admin", 200, 403), ("member", 403, 403), ("other_owner", 404, 404)]
)
def test_who_may(site: Site, vendor: FakeVendor, who: str, reads: int, writes: int) -> None:
    browser = site.cast.client(who)
    assert browser.get(path(site)).status_code == reads
    assert browser.post(path(site), {"mode": "list", "tool": ["fake_list"], "version": ""}).status_code == writes
    assert stored(site) is None


def test_the_agent_of_another_organization_is_not_found(site: Site, vendor: FakeVendor) -> None:
    foreign = make_tenant(site.cast.other_org, site.cast.user("other_owner"), name="foreign bot").client
    address = site.path("proxy_pages:client-tools", str(foreign.id), "fake")
    assert site.owner().get(address).status_code == 404
    assert site.owner().post(address, {"mode": "list", "tool": ["fake_list"], "version": ""}).status_code == 404
    assert not ServiceClientAllowlist.objects.exists()
