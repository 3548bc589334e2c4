"""The callers of a tool, and the tools of a person or an agent: the pages say what a call would answer."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import override_settings

from bench.page_seed import Size, seed
from credentials.credential_scope import CredentialScope
from gateway.catalog import registry
from gateway.lib import clock
from oauth_ext.models import Client, ServiceClientAllowlist, ServiceClientVendor
from oauth_ext.models.client import ToolMode
from orgs.models import Membership, ServerAccess, Team, TeamMembership, ToolAllowlist
from orgs.services.known_tools import record_tools
from proxy.caller_rows import organization_access, principal_of
from proxy.calls.decide import may_call
from proxy.control_plane.assumed_callers import identity_of_client, identity_of_person
from proxy.control_plane.tool_rights import callers_of
from tests.api.pages.conftest import Site, notices, text
from tests.factories.statements import statements
from tests.factories.tenant import connect, make_tenant, restrict_tools

TOOL, ACCESS, PERSON = "proxy_pages:tool", "proxy_pages:vendor-access", "orgs:person-access"
READS = b'{"annotations": {"readOnlyHint": true}, "name": "fake_list"}'
WRITES = b'{"name": "fake_write"}'


@pytest.fixture
def connected(site: Site) -> Site:
    """`fake` is connected in both organizations with two tools, and members have no access by default."""
    for organization, owner in ((site.cast.org, "owner"), (site.cast.other_org, "other_owner")):
        connect(organization, site.cast.user(owner))
        organization.default_server_access = "none"
        organization.save()
        record_tools(organization=organization, vendor="fake", definitions={"fake_list": READS, "fake_write": WRITES})
    make_tenant(site.cast.other_org, site.cast.user("other_owner"), "foreign bot")
    return site


def member(site: Site) -> Membership:
    return Membership.objects.get(organization=site.cast.org, user=site.cast.user("member"))


def callers(site: Site, tool: str = "fake_list", who: str = "admin") -> dict[str, tuple[str, ...]]:
    """Name to the reasons, on the tool's page; the vendor's page says the same."""
    browser = site.cast.client(who)
    shown = browser.get(site.path(TOOL, "fake", tool)).context["callers"]
    again = browser.get(site.path(ACCESS, "fake"), {"tool": tool}).context["callers"]
    assert shown.rows == again.rows
    assert (shown.people + shown.agents, shown.all_people, shown.all_agents) == (len(shown.rows), 3, 1)
    return {each.name: (*each.access, *each.tools) for each in shown.rows}


def give(site: Site, **more: Any) -> None:
    ServerAccess.objects.create(organization=site.cast.org, vendor="fake", granted_by=site.cast.user("owner"), **more)


def test_each_caller_has_its_reason(connected: Site) -> None:
    by_role, anything = "as admin or owner", "every tool is allowed"
    assert callers(connected) == {
        "Owner": (by_role, f"{anything} for the role owner"),
        "Admin": (by_role, f"{anything} for the role admin"),
        "build bot": ("can use every vendor", "all tools allowed (default)"),
    }
    team = Team.objects.create(organization=connected.cast.org, name="Night shift")
    TeamMembership.objects.create(team=team, membership=member(connected))
    end = clock.now() + timedelta(days=3)
    give(connected, team=team)
    give(connected, membership=member(connected), expires_at=end)
    assert callers(connected)["Member"] == (
        f"given directly until {end:%-d %b %Y, %H:%M} UTC",
        "through team Night shift",
        f"{anything} for the role member",
    )


def test_lists_and_modes_take_callers_out(connected: Site) -> None:
    client = connected.tenant.client
    give(connected, membership=member(connected))
    restrict_tools(connected.cast.org, "fake_list")
    assert callers(connected, "fake_write").keys() == {"Owner", "Admin"}
    assert callers(connected)["Member"][1:] == ("allowed tools of the role member",)
    ToolAllowlist.objects.all().delete()
    Client.objects.filter(pk=client.pk).update(tool_mode=ToolMode.READ_ONLY)
    ServiceClientAllowlist.objects.create(client=client, vendor="fake", tools=["fake_list", "fake_write"])
    assert callers(connected, "fake_write").keys() == {"Owner", "Admin", "Member"}
    assert callers(connected)["build bot"] == (
        "can use every vendor",
        "the agent’s own list",
        "read-only agent, read-only tool",
    )


def test_access_that_ended_and_people_who_left_are_not_listed(connected: Site) -> None:
    past = clock.now() - timedelta(minutes=1)
    give(connected, membership=member(connected), expires_at=past)
    ServiceClientVendor.objects.create(client=connected.tenant.client, vendor="fake", expires_at=past)
    assert callers(connected).keys() == {"Owner", "Admin"}
    user = connected.cast.user("owner")
    user.is_active = False
    user.save()
    page = connected.cast.client("admin").get(connected.path(TOOL, "fake", "fake_list"))
    assert [each.name for each in page.context["callers"].rows] == ["Admin"]


def test_the_list_is_the_verdict_of_calls(connected: Site) -> None:
    organization, vendor = connected.cast.org, registry.known_vendor("fake")
    team = Team.objects.create(organization=organization, name="Night shift")
    TeamMembership.objects.create(team=team, membership=member(connected))
    give(connected, team=team)
    restrict_tools(organization, "fake_list", role="admin")
    found = callers_of(organization, ["fake"], vendor, "fake_write", {})
    rights = organization_access(organization.id)
    people = {row.membership.user_id for row in found.people}
    for row in Membership.objects.filter(organization=organization):
        principal = principal_of(identity_of_person(row.user_id, organization.id))
        denied = may_call(principal, rights, vendor, "fake_write", is_read_only=False)
        assert (row.user_id in people) is (denied is None)
    agent = principal_of(identity_of_client(connected.tenant.client))
    assert [each.principal for each in found.agents] == [agent]


@pytest.mark.parametrize("who", ["member", "other_owner", "stranger"])
def test_others_learn_nothing(connected: Site, who: str) -> None:
    give(connected, membership=member(connected))
    browser = connected.cast.client(who)
    page = browser.get(connected.path(TOOL, "fake", "fake_list"))
    assert page.status_code == (200 if who == "member" else 404)
    assert "build bot" not in text(page)
    assert "Who can call it" not in text(page)
    refused = browser.get(connected.path(ACCESS, "fake"), {"tool": "fake_list"})
    assert refused.status_code == (403 if who == "member" else 404)


def test_nothing_of_another_organization_is_listed(connected: Site) -> None:
    shown = text(
        connected.cast.client("other_owner").get(f"/orgs/{connected.cast.other_org.id}/vendors/fake/tools/fake_list")
    )
    assert "foreign bot" in shown
    assert "build bot" not in shown
    typed = connected.cast.client("admin").get(connected.path(ACCESS, "fake"), {"tool": "unheard"}, follow=True)
    assert typed.redirect_chain == [(connected.path(ACCESS, "fake"), 302)]
    assert notices(typed) == ["Fake has no tool called “unheard”."]


def test_a_person_sees_the_tools_that_calls_allow(connected: Site) -> None:
    path = connected.path(PERSON, str(connected.cast.user("member").id))
    give(connected, membership=member(connected))
    restrict_tools(connected.cast.org, "fake_list")
    for who in ("member", "admin"):
        browser = connected.cast.client(who)
        [row] = browser.get(path).context["vendors"]
        assert (row.allowed, row.offered, row.refusal) == (1, 2, "")
        listed = browser.get(path, {"vendor": "fake"})
        assert listed.context["allowed"] == ["fake_list"]
        assert listed.context["others"] == (["fake_write"] if who == "admin" else [])
        assert ("fake_write" in text(listed)) is (who == "admin")
    assert connected.cast.client("admin").get(path, {"vendor": "unheard"}).status_code == 404
    own = connected.path(PERSON, str(connected.cast.user("admin").id))
    assert connected.cast.client("member").get(own, {"vendor": "fake"}).status_code == 403
    assert connected.cast.client("other_owner").get(path, {"vendor": "fake"}).status_code == 404


def test_access_without_credentials_allows_no_tool(connected: Site) -> None:
    cast = connected.cast
    team = Team.objects.create(organization=cast.org, name="Night shift")
    give(connected, membership=member(connected))
    cast.org.credentials.all().delete()
    connect(cast.org, cast.user("owner"), "fake", CredentialScope.TEAM, {"team": team})
    path = connected.path(PERSON, str(cast.user("member").id))
    [row] = cast.client("member").get(path).context["vendors"]
    assert (row.allowed, row.offered) == (0, 2)
    assert "is not connected" in row.refusal


def test_an_agent_has_the_number_of_tools_it_can_call(connected: Site) -> None:
    client = connected.tenant.client
    path = connected.client_path("service-client-tools")
    [row] = connected.cast.client("admin").get(path).context["tools"]
    assert (len(row["can"].allowed), len(row["can"].offered)) == (2, 2)
    Client.objects.filter(pk=client.pk).update(tool_mode=ToolMode.READ_ONLY)
    [row] = connected.cast.client("admin").get(path).context["tools"]
    assert row["can"].allowed == {"fake_list"}
    Client.objects.filter(pk=client.pk).update(restricted=True)
    connect(connected.cast.other_org, connected.cast.user("other_owner"))
    assert connected.cast.client("member").get(path).status_code == 403


def test_a_large_organization_costs_no_more_queries(db: None) -> None:
    seeded = seed(Size(members=200, vendors=50, tools=4, agents=100, calls=0))
    slug, org = seeded.things["vendor"], seeded.cast.org
    vendor, tool = registry.known_vendor(slug), seeded.things["tool"]
    with statements() as asked:
        found = callers_of(org, [slug], vendor, tool, {})
    assert len(asked) <= 10
    assert (found.all_people, found.all_agents) == (203, 101)
    path = f"/orgs/{org.id}/vendors/{slug}/access"
    browser = seeded.cast.client("admin")
    with override_settings(RATELIMIT_ENABLE=False), statements() as asked:
        shown = browser.get(path, {"tool": tool, "page": "2"}).context["callers"]
    assert len(shown.rows) == 50
    assert len(asked) <= 22
