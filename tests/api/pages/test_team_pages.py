"""A team's tabs: its facts and members, its tools, its members' calls, its settings."""

from __future__ import annotations

import pytest

from credentials.credential_scope import CredentialScope
from orgs.models import KnownTool, Membership, Organization, ServerAccess, Team, TeamMembership
from orgs.services.tool_access import set_allowlist
from tests.api.audit.log_rows import add_call
from tests.api.pages.conftest import Site, text
from tests.factories.api import Api
from tests.factories.cast import make_person
from tests.factories.streamed import body_of
from tests.factories.tenant import connect

TABS = ("team", "team-access", "team-tools", "team-settings")
REFUSED = {"member": 403, "other_owner": 404, "stranger": 404, "nobody": 302}


@pytest.fixture
def team(site: Site) -> Team:
    """With the member in it, and one vendor; the other organization has one of the same name with its owner."""
    theirs = Team.objects.create(organization=site.cast.other_org, name="Night shift")
    ours = Team.objects.create(organization=site.cast.org, name="Night shift")
    for each, who in ((ours, "member"), (theirs, "other_owner")):
        membership = Membership.objects.get(user=site.cast.user(who), organization=each.organization)
        TeamMembership.objects.create(team=each, membership=membership)
        ServerAccess.objects.create(organization=each.organization, team=each, vendor="fake")
    return ours


def address(site: Site, team: Team, name: str = "team") -> str:
    app = "audit_pages" if name == "team-activity" else "orgs"
    return site.path(f"{app}:{name}", str(team.id))


def test_each_tab_leads_to_the_others(site: Site, team: Team) -> None:
    admin = site.cast.client("admin")
    for name in (*TABS, "team-activity"):
        page = admin.get(address(site, team, name))
        urls = [tab["url"] for tab in page.context["tabs"]]
        assert urls == [address(site, team, each) for each in (*TABS[:3], "team-activity", "team-settings")]
        assert [tab["url"] for tab in page.context["tabs"] if tab["active"]] == [address(site, team, name)]
        assert "Night shift</h1>" in text(page)


@pytest.mark.parametrize("who", REFUSED)
def test_others_see_no_tab(site: Site, team: Team, who: str) -> None:
    for name in (*TABS, "team-activity"):
        assert site.cast.client(who).get(address(site, team, name)).status_code == REFUSED[who]
    theirs = Team.objects.get(organization=site.cast.other_org)
    for name in (*TABS, "team-activity"):
        assert site.owner().get(address(site, theirs, name)).status_code == 404


def test_the_overview_says_what_the_team_has_and_when_it_called(site: Site, team: Team) -> None:
    connect(site.cast.org, site.cast.user("owner"), "fake", CredentialScope.TEAM, {"team": team}, apiKey="k")
    page = text(site.cast.client("admin").get(address(site, team)))
    assert f'href="{site.path("proxy_pages:vendor", "fake")}">Fake</a>' in page
    member = site.cast.user("member")
    assert site.path("audit_pages:person-activity", str(member.id)) not in page, "no call yet"
    add_call(site.cast.org.id, user_id=str(member.id))
    add_call(site.cast.other_org.id, user_id=str(site.cast.user("other_owner").id))
    [(row, last_call)] = site.owner().get(address(site, team)).context["rows"]
    assert (row.membership.user, last_call is not None) == (member, True)


def test_a_search_finds_members_of_a_large_team(site: Site, team: Team) -> None:
    for number in range(55):
        row = Membership.objects.create(organization=site.cast.org, user=make_person(f"tester_{number:02}"))
        TeamMembership.objects.create(team=team, membership=row)
    assert 'name="q"' in text(site.owner().get(address(site, team)))
    found = site.owner().get(address(site, team), {"q": "tester_54"})
    assert [row.membership.user.email for row, _ in found.context["rows"]] == ["tester_54@example.com"]
    none = text(site.owner().get(address(site, team), {"q": "other_owner"}))
    assert "No member of the team matches" in none
    assert "other_owner@example.com" not in none


def test_the_tools_are_those_of_a_member_of_the_team(site: Site, team: Team) -> None:
    connect(site.cast.org, site.cast.user("owner"))
    for tool in ("list_devices", "wipe_device"):
        KnownTool.objects.create(organization=site.cast.org, vendor="fake", tool=tool, seen_sha256=b"1")
    owner = site.owner()
    assert "all 2" in text(owner.get(address(site, team, "team-tools")))
    set_allowlist(
        actor=site.cast.user("owner"), organization=site.cast.org, vendor="fake", role="member", tools=["list_devices"]
    )
    assert "1 of 2" in text(owner.get(address(site, team, "team-tools")))
    page = owner.get(address(site, team, "team-tools"), {"vendor": "fake"})
    assert page.context["lists"] == [(True, ["list_devices"]), (False, ["wipe_device"])]
    assert site.path("proxy_pages:tool", "fake", "list_devices") in text(page)
    ServerAccess.objects.filter(team=team).delete()
    assert "No vendors yet" in text(owner.get(address(site, team, "team-tools")))
    assert owner.get(address(site, team, "team-tools"), {"vendor": "fake"}).status_code == 404
    Organization.objects.filter(pk=site.cast.org.pk).update(default_server_access="all")
    assert "1 of 2" in text(owner.get(address(site, team, "team-tools")))


def test_the_calls_are_its_members_on_the_page_and_over_the_api(site: Site, team: Team, api: Api) -> None:
    member, owner = site.cast.user("member"), site.cast.user("owner")
    add_call(site.cast.org.id, user_id=str(member.id), request_id="theirs")
    add_call(site.cast.org.id, user_id=str(owner.id), request_id="another's")
    page = site.owner().get(address(site, team, "team-activity"))
    assert [entry.request_id for entry in page.context["entries"]] == ["theirs"]
    assert page.context["count"] == "1 call"
    assert f"team_id={team.id}" in page.context["export_url"]
    rows = body_of(site.owner().get(page.context["export_url"])).decode()
    assert ("theirs" in rows, "another" in rows) == (True, False)
    found = api.get("admin", f"/audit?org_id={site.cast.org.id}&team_id={team.id}")
    assert [entry["requestId"] for entry in found["entries"]] == ["theirs"]
    foreign = Team.objects.get(organization=site.cast.other_org)
    for wrong in (foreign.id, "nothing"):
        refused = api.refused("admin", "GET", f"/audit?org_id={site.cast.org.id}&team_id={wrong}")
        assert refused == (404, "not_found")


def test_an_empty_team_has_no_calls(site: Site) -> None:
    team = Team.objects.create(organization=site.cast.org, name="Day shift")
    add_call(site.cast.org.id, user_id=str(site.cast.user("owner").id))
    assert site.owner().get(address(site, team, "team-activity")).context["entries"] == []
