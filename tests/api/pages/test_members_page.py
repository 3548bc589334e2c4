"""The list of members, the page that changes a role, and the page that removes somebody."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from audit.models import AdminAuditEntry
from gateway.lib import clock
from oauth_ext.models import AccessToken, TokenFamily
from orgs.models import Membership, ServerAccessGrant, Team, TeamMembership
from orgs.services.invitations import create_invitation
from tests.api.audit.rows import add_row
from tests.api.oauth_ext.flow import make_public_client
from tests.api.pages.conftest import Site, notices, text
from tests.factories.cast import make_person
from tests.factories.tenant import connect, load_vendor


def path(site: Site, name: str = "members", who: str = "") -> str:
    return site.path(f"orgs:{name}", *([str(site.cast.user(who).id)] if who else []))


def member_row(site: Site, who: str = "member") -> Membership:
    return Membership.objects.get(organization=site.cast.org, user=site.cast.user(who))


def rows(page: str) -> list[str]:
    return page.split("<tbody>")[1].split("</tbody>")[0].split("<tr>")[1:]


def test_everybody_is_listed_and_nobody_of_another_organization(site: Site) -> None:
    page = text(site.cast.client("member").get(path(site)))
    assert [name in row for name, row in zip(("Owner", "Admin", "Member"), rows(page), strict=True)] == [True] * 3
    assert "other_owner@example.com" not in page
    assert "owner@example.com" in page


def test_a_member_sees_no_teams_no_calls_and_no_buttons(site: Site) -> None:
    team = Team.objects.create(organization=site.cast.org, name="Night shift")
    TeamMembership.objects.create(team=team, membership=member_row(site))
    add_row(org_id=site.cast.org.id, user_id=str(site.cast.user("member").id), timestamp=clock.now())
    add_row(org_id=site.cast.other_org.id, user_id=str(site.cast.user("admin").id), timestamp=clock.now())
    page = text(site.cast.client("member").get(path(site)))
    assert "Night shift" not in page
    assert "Last call" not in page
    assert "/role" not in page
    assert "/remove" not in page
    admin = rows(text(site.cast.client("admin").get(path(site))))
    assert "Night shift" in admin[2]
    assert f"?user_id={site.cast.user('member').id}" in admin[2]
    assert "never" in admin[1], "the call in another organization is nobody's business here"


def test_buttons_are_those_that_work(site: Site) -> None:
    def buttons(who: str) -> dict[str, tuple[bool, bool]]:
        found = site.cast.client(who).get(path(site)).context["rows"]
        return {each["membership"].user.name: (each["may_change_role"], each["may_remove"]) for each in found}

    nothing = (False, False)
    assert buttons("owner") == {"Owner": nothing, "Admin": (True, True), "Member": (True, True)}
    assert buttons("admin") == {"Owner": nothing, "Admin": (False, True), "Member": (False, True)}
    assert buttons("member") == {"Owner": nothing, "Admin": nothing, "Member": nothing}
    Membership.objects.filter(user=site.cast.user("admin")).update(role="owner")
    assert buttons("owner") == {"Owner": (False, True), "Admin": (True, True), "Member": (True, True)}


def test_a_long_list_has_pages_and_a_search_and_costs_no_more(site: Site) -> None:
    browser = site.cast.client("owner")
    with CaptureQueriesContext(connection) as few:
        browser.get(path(site))
    for number in range(57):
        person = make_person(f"tester_{number:02}")
        Membership.objects.create(organization=site.cast.org, user=person)
    with CaptureQueriesContext(connection) as many:
        first = browser.get(path(site))
    assert len(many) == len(few)
    assert len(rows(text(first))) == 50
    assert "1 to 50 of 60" in text(first)
    second = browser.get(path(site), {"page": "2"})
    assert len(rows(text(second))) == 10
    assert 'href="?page=1"' in text(second)
    assert len(rows(text(browser.get(path(site), {"page": "99"})))) == 10
    assert len(rows(text(browser.get(path(site), {"page": "x"})))) == 50
    found = browser.get(path(site), {"q": "  TESTER 1 "})
    assert len(rows(text(found))) == 15, "01, 10 to 19, 21, 31, 41 and 51"
    nobody = browser.get(path(site), {"q": "nobody at all"})
    assert "No member matches" in text(nobody)
    assert len(rows(text(browser.get(path(site), {"q": "example.com", "page": "2"})))) == 10


def test_a_search_finds_by_any_name_and_by_address(site: Site) -> None:
    person = site.cast.user("member")
    person.display_name, person.first_name, person.last_name = "", "Maria", "Novak"
    person.save()
    for asked in ("maria", "NOVAK", "novak maria", "member@example", "ria ova"):
        assert len(rows(text(site.owner().get(path(site), {"q": asked})))) == 1, asked
    assert "No member matches" in text(site.owner().get(path(site), {"q": "maria admin"}))


def test_the_role_page_says_what_each_role_opens(site: Site) -> None:
    load_vendor("http://127.0.0.1:9/mcp", slug="other")
    for slug in ("fake", "other"):
        connect(site.cast.org, site.cast.user("owner"), slug)
    page = text(site.owner().get(path(site, "member-role", "member")))
    assert "May use every connected vendor (2)." in page
    assert "none of the 2 connected vendors" in page
    ServerAccessGrant.objects.create(organization=site.cast.org, membership=member_row(site), vendor="other")
    assert "Member would have 1 of 2: Other." in text(site.owner().get(path(site, "member-role", "member")))
    assert "cannot" not in page
    assert 'value="member" checked' in page


def test_a_role_is_changed_and_recorded(site: Site) -> None:
    address = path(site, "member-role", "member")
    response = site.owner().post(address, {"role": "admin"}, follow=True)
    assert notices(response) == ["Member is now an admin."]
    assert member_row(site).role == "admin"
    assert notices(site.owner().post(address, {"role": "member"}, follow=True)) == ["Member is now a member."]
    events = AdminAuditEntry.objects.filter(event_type="member.role_changed").order_by("timestamp", "id")
    assert [event.metadata for event in events] == [
        {"role": "admin", "was": "member"},
        {"role": "member", "was": "admin"},
    ]


@pytest.mark.parametrize("role", ["", "owner", "root", "Admin"])
def test_a_role_that_nobody_assigns_is_refused_on_the_page(site: Site, role: str) -> None:
    response = site.owner().post(path(site, "member-role", "member"), {"role": role})
    assert response.status_code == 422
    assert "Choose admin or member." in text(response)
    assert member_row(site).role == "member"


def test_nobody_changes_their_own_role(site: Site) -> None:
    own = path(site, "member-role", "owner")
    for response in (site.owner().get(own), site.owner().post(own, {"role": "member"})):
        assert response.status_code == 403
        assert "You cannot change your own role." in text(response)
    assert member_row(site, "owner").role == "owner"


def test_an_owner_is_warned_before_another_is_demoted(site: Site) -> None:
    Membership.objects.filter(user=site.cast.user("admin")).update(role="owner")
    page = site.owner().get(path(site, "member-role", "admin"))
    assert "nobody can make them owner again" in text(page)
    assert "checked" not in text(page)
    assert site.owner().post(path(site, "member-role", "admin"), {"role": "admin"}).status_code == 302
    assert member_row(site, "admin").role == "admin"


def give_out(site: Site, who: str) -> None:
    """Tokens, an app, a grant, a team and an invitation of one member, and the like in the other organization."""
    person, client = site.cast.user(who), make_public_client("https://app.example/cb")
    later = clock.now() + timedelta(hours=1)
    for organization, tokens in ((site.cast.org, 3), (site.cast.other_org, 1)):
        Membership.objects.get_or_create(organization=organization, user=person)
        family = TokenFamily.objects.create(
            client=client, user=person, organization=organization, scope="mcp:all", expires_at=later
        )
        for number in range(tokens):
            AccessToken.objects.create(
                user=person,
                application=client,
                organization=organization,
                token_family=family,
                token=f"{organization.id}-{number}",
                expires=later,
                scope="mcp:all",
            )
    expired = AccessToken.objects.filter(organization=site.cast.org).first()
    assert expired is not None
    expired.expires = clock.now()
    expired.save()
    membership = member_row(site, who)
    ServerAccessGrant.objects.create(organization=site.cast.org, membership=membership, vendor="fake")
    team = Team.objects.create(organization=site.cast.org, name="Night shift")
    TeamMembership.objects.create(team=team, membership=membership)


def test_the_removal_names_what_ends_and_ends_it(site: Site) -> None:
    give_out(site, "admin")
    create_invitation(actor=site.cast.user("admin"), organization=site.cast.org)
    address = path(site, "member-remove", "admin")
    page = text(site.owner().get(address))
    assert "2 access tokens and 1 connected app" in page
    assert "1 vendor grant: Fake" in page
    assert "the place in 1 team: Night shift" in page
    assert "1 pending invitation</a> they made can still be used" in page
    response = site.owner().post(address, follow=True)
    assert notices(response) == ["Admin is no longer a member. Their tokens no longer work."]
    assert list(AccessToken.objects.values_list("organization_id", flat=True)) == [site.cast.other_org.id]
    assert list(TokenFamily.objects.values_list("organization_id", flat=True)) == [site.cast.other_org.id]
    assert not TeamMembership.objects.exists()
    assert not ServerAccessGrant.objects.exists()
    assert site.owner().get(address).status_code == 404
    assert site.owner().post(address).status_code == 404


@pytest.mark.parametrize(("who", "whom"), [("admin", "owner"), ("admin", "second admin")])
def test_an_admin_removes_members_only(site: Site, who: str, whom: str) -> None:
    second = make_person("second_admin")
    site.cast.people["second admin"] = second
    Membership.objects.create(organization=site.cast.org, user=second, role="admin")
    for response in (
        site.cast.client(who).get(path(site, "member-remove", whom)),
        site.cast.client(who).post(path(site, "member-remove", whom)),
    ):
        assert response.status_code == 403
        assert "Only an owner removes admins and owners." in text(response)
    assert Membership.objects.filter(organization=site.cast.org).count() == 4


def test_the_only_owner_stays(site: Site) -> None:
    own = path(site, "member-remove", "owner")
    for response in (site.owner().get(own), site.owner().post(own)):
        assert response.status_code == 409
        assert "You are the only owner" in text(response)
        assert 'class="btn btn-danger"' not in text(response)
    assert member_row(site, "owner").role == "owner"


def test_an_admin_leaves(site: Site) -> None:
    browser, own = site.cast.client("admin"), path(site, "member-remove", "admin")
    assert "You leave Acme" in text(browser.get(own))
    response = browser.post(own, follow=True)
    assert response.redirect_chain[-1][0] == "/welcome"
    assert notices(response) == ["You left Acme."]
    assert browser.get(path(site)).status_code == 404


@pytest.mark.usefixtures("lapsed")
def test_people_are_managed_without_a_plan(site: Site) -> None:
    assert site.owner().post(path(site, "member-role", "admin"), {"role": "member"}).status_code == 302
    assert site.owner().post(path(site, "member-remove", "admin")).status_code == 302
