"""The list of teams, one team with its members, vendors and credentials, and the page that deletes it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from audit.models import AdminAuditEntry
from credentials.credential_scope import CredentialScope
from credentials.models import Credential
from gateway.lib import clock
from orgs.models import Membership, Organization, ServerAccess, Team, TeamMembership
from orgs.pages import team as team_page
from tests.api.pages.conftest import Site, hidden, notices, text
from tests.factories.api import Api
from tests.factories.cast import make_person
from tests.factories.tenant import connect, load_vendor

KEY = "key-nobody-may-read"


@pytest.fixture
def team(site: Site) -> Team:
    """A team, and one of the same name elsewhere that must stay as it is."""
    foreign = Team.objects.create(organization=site.cast.other_org, name="Night shift")
    ServerAccess.objects.create(organization=site.cast.other_org, team=foreign, vendor="fake")
    return Team.objects.create(organization=site.cast.org, name="Night shift")


def path(site: Site, team: Team, name: str = "team") -> str:
    return site.path(f"orgs:{name}", str(team.id))


def send(site: Site, team: Team, who: str = "admin", **fields: str) -> Any:
    """Presses the button on the page that has it."""
    page = "team" if fields["action"].endswith("-member") else "team-access"
    return site.cast.client(who).post(path(site, team, page), fields, follow=True)


def rename(site: Site, team: Team, name: str) -> Any:
    return site.cast.client("admin").post(path(site, team, "team-settings"), {"name": name}, follow=True)


def store(site: Site, team: Team, scope: CredentialScope, name: str = "") -> Credential:
    return connect(site.cast.org, site.cast.user("owner"), "fake", scope, {"team": team, "name": name}, apiKey=KEY)


def members(team: Team) -> set[str]:
    return set(TeamMembership.objects.filter(team=team).values_list("membership__user__display_name", flat=True))


def granted(team: Team) -> set[str]:
    return set(ServerAccess.objects.filter(team=team).values_list("vendor", flat=True))


def events() -> list[str]:
    rows = AdminAuditEntry.objects.exclude(event_type__startswith="service_client").order_by("timestamp", "id")
    return [event for event in rows.values_list("event_type", flat=True) if not event.startswith("agent_key")]


def test_a_team_is_made_and_opened(site: Site) -> None:
    browser, address = site.cast.client("admin"), site.path("orgs:teams")
    assert "No teams yet" in text(browser.get(address))
    response = browser.post(address, {"name": "  Night shift "}, follow=True)
    made = Team.objects.get()
    assert response.redirect_chain == [(path(site, made), 302)]
    assert notices(response) == ["Night shift is ready. Add members and vendors next."]
    assert "No members yet" in text(response)
    again = browser.post(address, {"name": "Night shift"})
    assert again.status_code == 422
    assert "already has this name" in text(again)
    assert 'id="id_name_error"' in text(again)
    assert 'value="Night shift"' in text(again)
    assert events() == ["team.created"]


@pytest.mark.parametrize("name", ["", "   ", "x" * 101, "two\u202elines"])
def test_a_bad_name_makes_and_renames_nothing(site: Site, team: Team, name: str) -> None:
    browser = site.cast.client("admin")
    for response in (
        browser.post(site.path("orgs:teams"), {"name": name}),
        browser.post(path(site, team, "team-settings"), {"name": name}),
    ):
        assert response.status_code == 422
        assert 'id="id_name_error"' in text(response)
    assert sorted(Team.objects.values_list("name", flat=True)) == ["Night shift"] * 2


def test_the_list_says_who_may_use_what(site: Site, team: Team) -> None:
    load_vendor("http://127.0.0.1:9/mcp", slug="other")
    TeamMembership.objects.create(team=team, membership=Membership.objects.get(user=site.cast.user("member")))
    for vendor in ("other", "gone-from-the-catalog"):
        ServerAccess.objects.create(organization=site.cast.org, team=team, vendor=vendor)
    store(site, team, CredentialScope.TEAM)
    page = text(site.cast.client("admin").get(site.path("orgs:teams")))
    assert "1 team</h2>" in page
    assert 'data-label="Vendors">gone-from-the-catalog, Other<' in page
    assert 'data-label="Own credentials">Fake<' in page
    assert 'data-label="Members">1<' in page
    assert "/delete" not in page, "deleting is the owner's"
    assert path(site, team, "team-delete") in text(site.owner().get(site.path("orgs:teams")))


def test_a_long_list_has_pages_and_costs_no_more(site: Site, team: Team) -> None:
    browser, address = site.owner(), site.path("orgs:teams")
    with CaptureQueriesContext(connection) as few:
        browser.get(address)
    Team.objects.bulk_create(Team(organization=site.cast.org, name=f"Team {n:02}") for n in range(55))
    with CaptureQueriesContext(connection) as many:
        assert text(browser.get(address)).count("<tr>") == 51
    assert len(many) == len(few)
    assert text(browser.get(address, {"page": "2"})).count("<tr>") == 7


@pytest.mark.usefixtures("lapsed")
def test_without_a_plan_no_team_is_made_and_the_rest_works(site: Site, team: Team, api: Api) -> None:
    address = site.path("orgs:teams")
    page = text(site.cast.client("admin").get(address))
    assert "New teams need an active plan." in page
    assert 'type="submit" disabled>Create team' in page
    response = site.cast.client("admin").post(address, {"name": "Kept"})
    assert response.status_code == 402
    assert 'value="Kept"' in text(response)
    assert api.refused("admin", "POST", "/orgs/{org}/teams", {"name": "Kept"}) == (402, "subscription_required")
    assert notices(rename(site, team, "Day shift")) == ["The team is now called Day shift."]
    assert notices(send(site, team, action="grant", vendor="fake")) == ["Everyone in the team can use Fake."]
    assert site.owner().post(path(site, team, "team-delete"), {"typed_name": "Day shift"}).status_code == 302
    assert Team.objects.filter(organization=site.cast.org).count() == 0


def test_renaming_keeps_the_name_once(site: Site, team: Team) -> None:
    Team.objects.create(organization=site.cast.org, name="Day shift")
    response = site.cast.client("admin").post(path(site, team, "team-settings"), {"name": "Day shift"})
    assert response.status_code == 422
    assert 'id="id_name_error"' in text(response)
    assert notices(rename(site, team, "Night shift")) == ["The team is now called Night shift."]


def test_members_come_and_go_and_come_back(site: Site, team: Team) -> None:
    member = str(site.cast.user("member").id)
    added = send(site, team, action="add-member", member=member)
    assert notices(added) == ["Member was added to the team."]
    assert "data-dismiss hidden" in text(added), "a script lets it go"
    assert notices(send(site, team, action="add-member", member=member)) == ["Member was added to the team."]
    assert members(team) == {"Member"}
    browser = site.cast.client("admin")
    page = browser.post(path(site, team), {"action": "remove-member", "member": member}, follow=True)
    assert members(team) == set()
    assert "Member was removed from the team." in text(page)
    undo = page.context["undo"]["fields"]
    assert undo == {"action": "add-member", "member": member}
    assert "Undo" not in text(browser.get(path(site, team))), "offered once"
    assert browser.post(path(site, team), undo).status_code == 302
    assert members(team) == {"Member"}
    assert events() == ["team.member_added", "team.member_removed", "team.member_added"]


def test_who_was_not_in_the_team_is_not_put_there_by_an_undo(site: Site, team: Team) -> None:
    page = send(site, team, action="remove-member", member=str(site.cast.user("member").id))
    assert notices(page) == ["Member is not in the team."]
    assert page.context["undo"] is None
    page = send(site, team, action="revoke", vendor="fake")
    assert notices(page) == ["The team has no access to Fake."]
    assert page.context["undo"] is None
    assert events() == []


@pytest.mark.parametrize("whom", ["", "nothing", "stranger", "other_owner"])
def test_only_members_of_the_organization_are_added(site: Site, team: Team, whom: str) -> None:
    person = str(site.cast.people[whom].id) if whom in site.cast.people else whom
    response = site.cast.client("admin").post(path(site, team), {"action": "add-member", "member": person})
    assert response.status_code == 422
    assert 'id="member_error"' in text(response)
    assert 'aria-describedby="member_error"' in text(response)
    assert members(team) == set()
    assert "@example.com" in text(response)
    assert "other_owner@example.com" not in text(response)


@pytest.mark.parametrize("whom", ["", "nothing", "stranger", "other_owner"])
def test_nobody_else_is_taken_out(site: Site, team: Team, whom: str) -> None:
    person = str(site.cast.people[whom].id) if whom in site.cast.people else whom
    response = site.cast.client("admin").post(path(site, team), {"action": "remove-member", "member": person})
    assert response.status_code == 404


def test_many_members_are_found_by_a_search(site: Site, team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(team_page, "MAX_CANDIDATES", 5)
    browser = site.cast.client("admin")
    assert 'name="find"' not in text(browser.get(path(site, team)))
    for number in range(56):
        row = Membership.objects.create(organization=site.cast.org, user=make_person(f"tester_{number:02}"))
        if number < 51:
            TeamMembership.objects.create(team=team, membership=row)
    page = text(browser.get(path(site, team)))
    assert 'name="find"' in page
    assert len(browser.get(path(site, team)).context["candidates"]) == 5
    found = browser.get(path(site, team), {"find": "tester_55"})
    assert [row.user.email for row in found.context["candidates"]] == ["tester_55@example.com"]
    nobody = text(browser.get(path(site, team), {"find": "tester_01"}))
    assert "No one outside the team matches" in nobody
    assert "1 to 50 of 51" in page
    assert len(browser.get(path(site, team), {"page": "2"}).context["page"]) == 1


def test_vendors_are_added_and_removed(site: Site, team: Team) -> None:
    assert notices(send(site, team, action="grant", vendor="fake")) == ["Everyone in the team can use Fake."]
    assert granted(team) == {"fake"}
    page = text(site.cast.client("admin").get(path(site, team, "team-access")))
    assert "not connected yet" in page
    connect(site.cast.org, site.cast.user("owner"))
    page = text(site.cast.client("admin").get(path(site, team, "team-access")))
    assert "not connected yet" not in page
    assert "> connected</span>" in page
    response = send(site, team, action="revoke", vendor="fake")
    assert granted(team) == set()
    assert response.context["undo"]["fields"] == {"action": "grant", "vendor": "fake"}
    assert ServerAccess.objects.filter(organization=site.cast.other_org).count() == 1


@pytest.mark.parametrize("vendor", ["", "nothing", "../fake"])
def test_a_vendor_that_the_catalog_lacks_is_refused(site: Site, team: Team, vendor: str) -> None:
    browser = site.cast.client("admin")
    response = browser.post(path(site, team, "team-access"), {"action": "grant", "vendor": vendor})
    assert response.status_code == 422
    assert 'id="vendor_error"' in text(response)
    assert browser.post(path(site, team, "team-access"), {"action": "revoke", "vendor": vendor}).status_code == 404
    assert browser.post(path(site, team, "team-access"), {"action": "everything"}).status_code == 422
    assert granted(team) == set()


def test_the_default_that_makes_server_access_idle_is_named(site: Site, team: Team) -> None:
    assert "make no difference for now" not in text(site.owner().get(path(site, team, "team-access")))
    Organization.objects.filter(pk=site.cast.org.pk).update(default_server_access="all")
    assert "make no difference for now" in text(site.owner().get(path(site, team, "team-access")))


def test_credentials_and_keys_are_named_and_never_shown(site: Site, team: Team) -> None:
    store(site, team, CredentialScope.TEAM)
    store(site, team, CredentialScope.NAMED_KEY, name="Reporting")
    connect(site.cast.org, site.cast.user("owner"))
    for name in ("team", "team-access", "team-delete"):
        page = text(site.owner().get(path(site, team, name)))
        assert KEY not in page
        assert "Reporting" in page
    page = text(site.owner().get(path(site, team, "team-access")))
    assert 'Team credentials <span class="muted">2</span>' in page
    assert site.path("credentials:team-credential", str(team.id), "fake") in page


def test_a_team_is_deleted_by_its_name(site: Site, team: Team) -> None:
    send(site, team, action="add-member", member=str(site.cast.user("member").id))
    send(site, team, action="grant", vendor="fake")
    store(site, team, CredentialScope.TEAM)
    key = store(site, team, CredentialScope.NAMED_KEY, name="Reporting")
    address = path(site, team, "team-delete")
    page = text(site.owner().get(address))
    assert "1 member leaves the team and stays in the organization" in page
    assert "access to 1 vendor ends: Fake" in page
    assert "credentials for Fake are destroyed" in page
    assert "1 key assigned to it (Reporting) is kept without a team" in page
    assert 'data-confirm-text="Night shift"' in page
    for typed in ("", "night shift", "Night"):
        refused = site.owner().post(address, {"typed_name": typed})
        assert refused.status_code == 422
        assert "Type Night shift to confirm." in text(refused)
        assert 'aria-describedby="typed_name_error"' in text(refused)
    response = site.owner().post(address, {"typed_name": " Night shift "}, follow=True)
    assert notices(response) == ["The team Night shift was deleted. Its members stay in the organization."]
    assert list(Team.objects.values_list("organization_id", flat=True)) == [site.cast.other_org.id]
    assert list(Credential.objects.values_list("id", "team_id")) == [(key.id, None)]
    assert Membership.objects.filter(organization=site.cast.org).count() == 3
    assert site.owner().post(address, {"typed_name": "Night shift"}).status_code == 404


def test_an_admin_reads_why_the_team_stays(site: Site, team: Team) -> None:
    page = text(site.cast.client("admin").get(path(site, team, "team-settings")))
    assert "Only owners can delete teams." in page
    assert path(site, team, "team-delete") not in page
    assert hidden(site.cast.client("admin").get(path(site, team)), "action") == "add-member"


def test_a_team_is_given_a_vendor_with_an_end(site: Site, team: Team) -> None:
    said = notices(send(site, team, action="grant", vendor="fake", ends="7d"))
    assert said[0].startswith("Everyone in the team can use Fake until ")
    row = ServerAccess.objects.get(team=team)
    assert row.expires_at is not None
    assert timedelta(days=6) < row.expires_at - clock.now() <= timedelta(days=7)
    assert f'datetime="{row.expires_at:%Y-%m-%dT%H:%M:%S}Z"' in text(site.owner().get(path(site, team, "team-access")))
    refused = site.owner().post(path(site, team, "team-access"), {"action": "grant", "vendor": "fake", "ends": "soon"})
    assert (refused.status_code, "Choose how long the access lasts." in text(refused)) == (422, True)
    assert ServerAccess.objects.get(team=team).expires_at == row.expires_at
