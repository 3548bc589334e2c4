"""The search finds what the viewer may open, and nothing of another organization."""

from __future__ import annotations

import pytest

from gateway.lib import clock
from orgs.models import KnownTool, Membership, ServerAccess
from tests.api.audit.rows import add_row
from tests.api.pages.conftest import INERT, SCRIPT, Site, text
from tests.factories.credentials import make_service_client
from tests.factories.tenant import connect


@pytest.fixture
def filled(site: Site) -> Site:
    connect(site.cast.org, site.cast.user("owner"))
    for organization, tool in ((site.cast.org, "fake_list"), (site.cast.other_org, "fake_foreign")):
        KnownTool.objects.create(organization=organization, vendor="fake", tool=tool, seen_sha256=b"1")
    make_service_client(site.cast.other_org, name="foreign bot")
    return site


def found(site: Site, by: str, words: str) -> dict[str, list[str]]:
    page = site.cast.client(by).get(site.path("proxy_pages:search"), {"q": words})
    assert page.status_code == 200
    return {group.label: [hit.name for hit in group.hits] for group in page.context["groups"]}


def test_an_admin_finds_each_kind(filled: Site) -> None:
    assert found(filled, "admin", "memb") == {"Pages": ["Members"], "People": ["Member"]}
    assert found(filled, "admin", "build")["Agents"] == ["build bot"]
    assert found(filled, "admin", "fake") == {"Vendors": ["Fake"], "Tools": ["fake_list"]}


def test_every_hit_opens_for_its_finder(filled: Site) -> None:
    member = Membership.objects.get(organization=filled.cast.org, user=filled.cast.user("member"))
    ServerAccess.objects.create(organization=filled.cast.org, membership=member, vendor="fake")
    for by in ("owner", "admin", "member"):
        for words in ("", "fake", "member", "owner", "build"):
            browser = filled.cast.client(by)
            page = browser.get(filled.path("proxy_pages:search"), {"q": words})
            for group in page.context["groups"]:
                for hit in group.hits:
                    assert browser.get(hit.url).status_code == 200, (by, hit)


def test_a_member_finds_no_agent_no_call_and_no_tool_without_access(filled: Site) -> None:
    add_row(org_id=filled.cast.org.id, request_id="req-1", timestamp=clock.now())
    assert found(filled, "member", "build") == {}
    assert found(filled, "member", "fake") == {"Vendors": ["Fake"]}
    assert found(filled, "member", "req-1") == {}
    assert "Calls" not in found(filled, "member", "")["Pages"]


def test_nothing_of_another_organization_is_found(filled: Site) -> None:
    add_row(org_id=filled.cast.other_org.id, request_id="req-2", timestamp=clock.now())
    for words in ("foreign", "req-2", filled.cast.user("other_owner").email, "Globex"):
        assert found(filled, "owner", words) == {}


def test_the_calls_of_a_request_are_found_by_its_whole_id(filled: Site) -> None:
    add_row(org_id=filled.cast.org.id, request_id="req-1", timestamp=clock.now())
    assert found(filled, "admin", "req-1") == {"Requests": ["req-1"]}
    assert found(filled, "admin", "req-") == {}


@pytest.mark.usefixtures("lapsed")
def test_without_a_plan_no_call_is_found(filled: Site) -> None:
    add_row(org_id=filled.cast.org.id, request_id="req-1", timestamp=clock.now())
    assert found(filled, "admin", "req-1") == {}


def test_a_script_gets_the_hits_alone_and_typed_words_are_inert(filled: Site) -> None:
    address = filled.path("proxy_pages:search")
    part = text(filled.owner().get(address, {"q": "fake"}, headers={"HX-Request": "true"}))
    assert 'role="option"' in part
    assert "<html" not in part
    for headers in ({}, {"HX-Request": "true"}):
        page = text(filled.owner().get(address, {"q": SCRIPT}, headers=headers))
        assert SCRIPT not in page
        assert INERT in page


@pytest.mark.parametrize(
    ("route", "field"), [("proxy_pages:search", "q"), ("proxy_pages:explain", "who"), ("proxy_pages:explain", "tool")]
)
def test_nul_in_the_words_reaches_no_database(filled: Site, route: str, field: str) -> None:
    page = filled.cast.client("owner").get(filled.path(route), {field: "fa\0ke"})
    assert page.status_code == 200
    assert "\0" not in text(page)
