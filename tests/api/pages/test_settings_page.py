"""An organization's settings: its name, the preview of who gains or loses vendors, and its end."""

from __future__ import annotations

import pytest
from django.conf import settings
from django.db import connection
from django.test.utils import CaptureQueriesContext

from audit.models import AdminAuditEntry
from credentials.models import Credential, OrganizationDataKey
from oauth_ext.models import Client
from orgs.models import Membership, Organization, ServerAccess, Team, TeamMembership
from orgs.services.invitations import create_invitation
from tests.api.pages.conftest import Site, notices, text
from tests.factories.api import Api
from tests.factories.cast import make_person
from tests.factories.tenant import connect, load_vendor


@pytest.fixture
def vendors(site: Site) -> Site:
    """Two connected vendors; two more members: one with access of its own, one with a team's."""
    load_vendor("http://127.0.0.1:9/mcp", slug="other")
    cast = site.cast
    for slug in ("fake", "other"):
        connect(cast.org, cast.user("owner"), slug)
    connect(cast.other_org, cast.user("other_owner"), "fake")
    Membership.objects.create(organization=cast.other_org, user=cast.user("stranger"))
    for name in ("direct", "teamed"):
        cast.people[name] = make_person(name)
        row = Membership.objects.create(organization=cast.org, user=cast.people[name])
        if name == "direct":
            ServerAccess.objects.create(organization=cast.org, membership=row, vendor="fake")
        else:
            team = Team.objects.create(organization=cast.org, name="Night shift")
            TeamMembership.objects.create(team=team, membership=row)
            for vendor in ("fake", "other"):
                ServerAccess.objects.create(organization=cast.org, team=team, vendor=vendor)
    return site


def default_access(site: Site) -> str:
    site.cast.org.refresh_from_db()
    return site.cast.org.default_server_access


def preview(site: Site, to: str) -> dict[str, list[str]]:
    """Person to the vendors in the preview."""
    response = site.owner().get(site.path("orgs:default-access"), {"to": to})
    assert response.status_code == 200
    return {each["person"].name: each["vendors"] for each in response.context["rows"]}


def used(site: Site, api: Api) -> dict[str, set[str]]:
    """Person to the vendors that the API says they may use."""
    people = Membership.objects.filter(organization=site.cast.org).select_related("user")
    return {
        row.user.name: {
            each["vendor"] for each in api.get("owner", f"/orgs/{{org}}/members/{row.user_id}/server-access")
        }
        for row in people
    }


def test_the_name_is_saved(site: Site) -> None:
    response = site.owner().post(site.path("orgs:settings"), {"name": " Acme  West "}, follow=True)
    assert notices(response) == ["The organization is now called Acme  West."]
    assert "<title>General settings - Acme  West - Gateway</title>" in text(response)
    assert Organization.objects.filter(name="Globex").exists()


@pytest.mark.parametrize("name", ["", "   ", "x" * 101, "hidden\u202ename"])
def test_a_bad_name_is_shown_beside_its_field(site: Site, name: str) -> None:
    response = site.owner().post(site.path("orgs:settings"), {"name": name})
    assert response.status_code == 422
    assert 'id="id_name_error"' in text(response)
    assert Organization.objects.filter(name="Acme").exists()


def test_the_preview_names_who_loses_what_and_is_right(vendors: Site, api: Api) -> None:
    Organization.objects.update(default_server_access="all")
    before = used(vendors, api)
    foretold = preview(vendors, "none")
    assert foretold == {"Member": ["Fake", "Other"], "Direct": ["Other"]}
    page = text(vendors.owner().get(vendors.path("orgs:default-access"), {"to": "none"}))
    assert "2 members lose 2 vendors" in page
    assert "Stranger" not in page
    assert default_access(vendors) == "all", "looking changes nothing"
    response = vendors.owner().post(vendors.path("orgs:default-access"), {"to": "none"}, follow=True)
    assert notices(response) == ["Members can now use only the vendors given to them or their teams."]
    assert default_access(vendors) == "none"
    lost = {name: {slug.title() for slug in before[name] - after} for name, after in used(vendors, api).items()}
    assert {name: sorted(gone) for name, gone in lost.items() if gone} == foretold
    vendors.cast.other_org.refresh_from_db()
    assert vendors.cast.other_org.default_server_access == "all"


def test_the_preview_names_who_gains_what_and_is_right(vendors: Site, api: Api) -> None:
    before = used(vendors, api)
    foretold = preview(vendors, "all")
    assert foretold == {"Member": ["Fake", "Other"], "Direct": ["Other"]}
    response = vendors.owner().post(vendors.path("orgs:default-access"), {"to": "all"}, follow=True)
    assert notices(response) == ["Members can now use all connected vendors."]
    won = {name: {slug.title() for slug in after - before[name]} for name, after in used(vendors, api).items()}
    assert {name: sorted(more) for name, more in won.items() if more} == foretold
    entry = AdminAuditEntry.objects.get(event_type="organization.settings_updated")
    assert entry.metadata == {"defaultServerAccess": "all", "was": "none"}


def test_nobody_loses_anything_where_nothing_is_connected(site: Site) -> None:
    Organization.objects.update(default_server_access="all")
    page = text(site.owner().get(site.path("orgs:default-access"), {"to": "none"}))
    assert "No members lose a vendor" in page
    assert "danger-zone" not in page


@pytest.mark.parametrize("to", ["", "some", "none", "ALL"])
def test_a_preview_of_no_change_leads_back(site: Site, to: str) -> None:
    response = site.owner().get(site.path("orgs:default-access"), {"to": to} if to else {})
    assert (response.status_code, response["Location"]) == (302, site.path("orgs:settings"))


@pytest.mark.parametrize("to", ["", "some", "ALL"])
def test_a_value_that_does_not_exist_is_not_stored(site: Site, to: str) -> None:
    assert site.owner().post(site.path("orgs:default-access"), {"to": to}).status_code == 400
    assert default_access(site) == "none"


def test_a_long_preview_has_pages_and_costs_no_more(vendors: Site) -> None:
    browser, address = vendors.owner(), vendors.path("orgs:default-access")
    with CaptureQueriesContext(connection) as few:
        browser.get(address, {"to": "all"})
    for number in range(60):
        Membership.objects.create(organization=vendors.cast.org, user=make_person(f"tester_{number:02}"))
    with CaptureQueriesContext(connection) as many:
        first = browser.get(address, {"to": "all"})
    assert len(many) == len(few)
    assert "62 members gain 2 vendors" in text(first)
    assert len(first.context["rows"]) == 50
    assert 'href="?to=all&amp;page=2"' in text(first)
    assert len(browser.get(address, {"to": "all", "page": "2"}).context["rows"]) == 12


def test_the_organization_ends_by_its_name(vendors: Site) -> None:
    create_invitation(actor=vendors.cast.user("owner"), organization=vendors.cast.org)
    browser, address = vendors.owner(), vendors.path("orgs:organization-delete")
    page = text(browser.get(address))
    assert "5 members lose access" in page
    assert "1 agent and its key stop working" in page
    assert "2 stored vendor credentials are destroyed and can’t be recovered" in page
    assert "1 team and 1 pending invitation are deleted" in page
    assert f"for {settings.AUDIT_RETENTION_DAYS} days" in page
    for typed in ("", "acme", "Globex", "Acme Inc"):
        refused = browser.post(address, {"typed_name": typed})
        assert refused.status_code == 422
        assert "Type Acme to confirm." in text(refused)
    assert Organization.objects.count() == 2
    response = browser.post(address, {"typed_name": " Acme "}, follow=True)
    assert response.redirect_chain[-1][0] == "/welcome"
    assert notices(response) == ["Acme was deleted."]
    assert list(Organization.objects.values_list("name", flat=True)) == ["Globex"]
    for model in (Credential, OrganizationDataKey, Membership):
        kept = set(model.objects.values_list("organization_id", flat=True))
        assert kept == {vendors.cast.other_org.id}, model
    assert not Client.objects.exists()
    assert browser.get(address).status_code == browser.post(address, {"typed_name": "Acme"}).status_code == 404
    assert AdminAuditEntry.objects.filter(org_id=vendors.cast.org.id, event_type="organization.deleted").count() == 1


@pytest.mark.usefixtures("lapsed")
def test_an_owner_without_a_plan_still_decides(site: Site) -> None:
    browser = site.owner()
    assert browser.post(site.path("orgs:settings"), {"name": "Acme West"}).status_code == 302
    assert browser.post(site.path("orgs:default-access"), {"to": "all"}).status_code == 302
    assert browser.post(site.path("orgs:organization-delete"), {"typed_name": "Acme West"}).status_code == 302
    assert list(Organization.objects.values_list("name", flat=True)) == ["Globex"]
