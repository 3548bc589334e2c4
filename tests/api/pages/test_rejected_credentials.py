"""Credentials that their vendor rejected, as the pages and the API say it: to whom, in which words, and of whose."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import pytest

from audit.models import REJECTED
from credentials.credential_scope import CredentialScope
from credentials.models import Credential
from gateway.lib import clock
from orgs.models import Membership, Organization, Team, TeamMembership
from tests.api.audit.rows import add_row
from tests.api.pages.conftest import Site, text
from tests.api.pages.test_markup import Strict
from tests.factories.tenant import connect

FLAG = "credentials rejected"
PAGES = ("connection", "team", "team-credential", "client", "client-credential")


@pytest.fixture
def team(site: Site) -> Team:
    """With the member in it; the other organization has one of the same name with its owner."""
    theirs = Team.objects.create(organization=site.cast.other_org, name="Night shift")
    ours = Team.objects.create(organization=site.cast.org, name="Night shift")
    for each, who in ((ours, "member"), (theirs, "other_owner")):
        membership = Membership.objects.get(user=site.cast.user(who), organization=each.organization)
        TeamMembership.objects.create(team=each, membership=membership)
    return ours


def address(site: Site, team: Team, page: str) -> str:
    """Of one of PAGES."""
    service_client = str(site.tenant.client.id)
    return {
        "connection": site.path("credentials:connection", "fake"),
        "team": site.path("orgs:team-access", str(team.id)),
        "team-credential": site.path("credentials:team-credential", str(team.id), "fake"),
        "client": site.path("oauth_pages:service-client-access", service_client),
        "client-credential": site.path("credentials:service-client-credential", service_client, "fake"),
    }[page]


def store(site: Site, scope: CredentialScope, **place: Any) -> Credential:
    return connect(site.cast.org, site.cast.user("owner"), "fake", scope, {"validated": True, **place}, apiKey="key")


def call(organization: Organization, scope: str, user_id: str, *, rejected: bool = True, **changes: Any) -> None:
    """A call that was made after everything that is stored, and after the call before it."""
    time.sleep(0.002)  # times of calls have whole milliseconds
    ending = {"status": "error", "error_code": REJECTED} if rejected else {"status": "success"}
    facts = {"org_id": organization.id, "vendor": "fake", "user_id": user_id, "credential_scope": scope}
    add_row(**{**facts, "user_label": "Mia Caller", "timestamp": clock.now(), **ending, **changes})


def show(site: Site, path: str, who: str = "admin") -> str:
    page = text(site.cast.client(who).get(path))
    assert not Strict(page).inline
    return page


def flags(site: Site, team: Team, who: str = "admin") -> set[str]:
    """Those of PAGES that show the flag."""
    return {page for page in PAGES if FLAG in show(site, address(site, team, page), who).casefold()}


@pytest.fixture
def everywhere(site: Site, team: Team) -> None:
    """Credentials at every level that has pages; the other organization is connected as well."""
    connect(site.cast.org, site.cast.user("owner"))
    connect(site.cast.other_org, site.cast.user("other_owner"))
    store(site, CredentialScope.TEAM, team=team)
    store(site, CredentialScope.SERVICE_CLIENT, service_client=site.tenant.client)


@pytest.mark.usefixtures("everywhere")
class TestPages:
    """All levels have credentials."""

    def test_nothing_was_rejected(self, site: Site, team: Team) -> None:
        assert flags(site, team) == set()
        assert FLAG not in show(site, site.path("proxy_pages:vendors"))

    def test_the_organizations(self, site: Site, team: Team) -> None:
        call(site.cast.org, "organization", str(site.cast.user("member").id))
        assert flags(site, team) == {"connection"}
        page = show(site, address(site, team, "connection"))
        assert "Fake is rejecting calls with these credentials" in page
        assert "choose “Replace”" in page
        assert "keeps working" not in page

    def test_the_teams(self, site: Site, team: Team) -> None:
        call(site.cast.org, "team", str(site.cast.user("member").id))
        assert flags(site, team) == {"connection", "team", "team-credential"}
        page = show(site, address(site, team, "connection"))
        assert "Fake refuses calls" not in page, "the organization's own are fine"
        assert f'href="{address(site, team, "team-credential")}"' in page

    def test_the_service_clients(self, site: Site, team: Team) -> None:
        call(site.cast.org, "service_client", site.tenant.client.subject)
        assert flags(site, team) == {"connection", "client", "client-credential"}
        assert f'href="{address(site, team, "client-credential")}"' in show(site, address(site, team, "connection"))

    def test_a_later_success_and_a_replacement_lift_it(self, site: Site, team: Team) -> None:
        for _ in range(2):
            call(site.cast.org, "organization", str(site.cast.user("member").id))
        call(site.cast.org, "team", str(site.cast.user("member").id))
        call(site.cast.org, "organization", str(site.cast.user("owner").id), rejected=False)
        assert flags(site, team) == {"connection", "team", "team-credential"}
        site.cast.client("admin").post(address(site, team, "team-credential"), {"apiKey": "new"})
        assert flags(site, team) == set()

    def test_another_organizations_flags_nothing_here(self, site: Site, team: Team) -> None:
        other, owner = site.cast.other_org, str(site.cast.user("other_owner").id)
        for scope, subject in (
            ("organization", owner),
            ("team", owner),
            ("team", str(site.cast.user("member").id)),
            ("service_client", site.tenant.client.subject),
        ):
            call(other, scope, subject)
        assert flags(site, team) == set()
        assert FLAG not in show(site, site.path("proxy_pages:vendors"))
        theirs = text(site.cast.client("other_owner").get(f"/orgs/{other.id}/vendors"))
        assert theirs.count(FLAG) == 1

    @pytest.mark.parametrize(
        ("who", "advice"),
        [("admin", ">Replace the credentials</a>."), ("member", "Ask an admin to replace the credentials.")],
    )
    def test_the_list_says_what_to_do(self, site: Site, who: str, advice: str) -> None:
        at = clock.now() + timedelta(minutes=1)
        call(site.cast.org, "organization", str(site.cast.user("member").id), timestamp=at)
        page = show(site, site.path("proxy_pages:vendors"), who)
        assert page.count(FLAG) == 1
        assert "Verified" not in page
        assert f'Last rejected call: <time datetime="{at:%Y-%m-%dT%H:%M:%S}Z"' in page
        assert advice in page

    @pytest.mark.parametrize("who", ["admin", "member"])
    def test_nobody_learns_whose_call_it_was(self, site: Site, team: Team, who: str) -> None:
        call(site.cast.org, "organization", str(site.cast.user("owner").id), tool="fake_payroll")
        paths = [site.path("proxy_pages:vendors"), address(site, team, "connection")]
        for path in paths if who == "admin" else paths[:1]:
            page = show(site, path, who)
            assert FLAG in page.casefold()
            assert "Mia Caller" not in page
            assert "fake_payroll" not in page


def test_a_rejected_key(site: Site, team: Team) -> None:
    key = store(site, CredentialScope.NAMED_KEY, team=team, name="Ops")
    store(site, CredentialScope.NAMED_KEY, name="Free")
    path = f"/api/orgs/{site.cast.org.id}/credentials/fake/keys"
    browser = site.cast.client("admin")
    assert [each["rejectedAt"] for each in browser.get(path).json()] == [None, None]
    at = clock.now() + timedelta(minutes=1)
    member = str(site.cast.user("member").id)
    call(site.cast.org, "named_key", member, credential_name="Ops", timestamp=at)
    call(site.cast.other_org, "named_key", member, credential_name="Free", timestamp=at)
    rejected = {each["name"]: each["rejectedAt"] for each in browser.get(path).json()}
    assert rejected == {"Free": None, "Ops": clock.rfc3339(at)}
    assert flags(site, team) == {"connection", "team"}
    page = show(site, address(site, team, "connection"))
    assert f'href="{site.path("credentials:key", "fake", str(key.id))}"' in page
    changed = browser.put(f"{path}/{key.id}", {"name": "Ops"}, content_type="application/json")
    assert changed.json()["rejectedAt"] is None


def test_only_admins_see_keys_over_the_api(site: Site) -> None:
    store(site, CredentialScope.NAMED_KEY, name="Ops")
    call(site.cast.org, "named_key", "anyone", credential_name="Ops")
    path = f"/api/orgs/{site.cast.org.id}/credentials/fake/keys"
    assert {who: site.cast.client(who).get(path).status_code for who in ("admin", "member", "other_owner")} == {
        "admin": 200,
        "member": 403,
        "other_owner": 404,
    }
