"""The list of members, the page that changes a role, and the page that removes somebody."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client as Browser
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from audit.models import AdminAuditEntry
from gateway.lib import clock
from oauth_ext.models import AccessToken, TokenFamily
from orgs.models import Membership, ServerAccess, Team, TeamMembership
from orgs.services.invitations import create_invitation
from tests.api.audit.rows import add_row
from tests.api.oauth_ext.flow import make_public_client
from tests.api.pages.conftest import Site, hidden, notices, text
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


def test_a_member_sees_no_teams_no_calls_and_one_button(site: Site) -> None:
    team = Team.objects.create(organization=site.cast.org, name="Night shift")
    TeamMembership.objects.create(team=team, membership=member_row(site))
    add_row(org_id=site.cast.org.id, user_id=str(site.cast.user("member").id), timestamp=clock.now())
    add_row(org_id=site.cast.other_org.id, user_id=str(site.cast.user("admin").id), timestamp=clock.now())
    page = text(site.cast.client("member").get(path(site)))
    assert "Night shift" not in page
    assert "Last call" not in page
    assert "/role" not in page
    assert "/remove" not in page
    assert [path(site, "leave") in row for row in rows(page)] == [False, False, True]
    admin = rows(text(site.cast.client("admin").get(path(site))))
    assert "Night shift" in admin[2]
    assert f"?user_id={site.cast.user('member').id}" in admin[2]
    assert "never" in admin[1], "the call in another organization is nobody's business here"


def test_buttons_are_those_that_work(site: Site) -> None:
    def buttons(who: str) -> dict[str, str]:
        found = site.cast.client(who).get(path(site)).context["rows"]
        kinds = ("may_change_role", "may_remove", "may_leave")
        return {each["membership"].user.name: " ".join(kind[4:] for kind in kinds if each[kind]) for each in found}

    assert buttons("owner") == {"Owner": "", "Admin": "change_role remove", "Member": "change_role remove"}
    assert buttons("admin") == {"Owner": "", "Admin": "leave", "Member": "remove"}
    assert buttons("member") == {"Owner": "", "Admin": "", "Member": "leave"}
    Membership.objects.filter(user=site.cast.user("admin")).update(role="owner")
    assert buttons("owner") == {"Owner": "leave", "Admin": "change_role remove", "Member": "change_role remove"}


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
    assert "No matches" in text(nobody)
    assert len(rows(text(browser.get(path(site), {"q": "example.com", "page": "2"})))) == 10


def test_a_search_finds_by_any_name_and_by_address(site: Site) -> None:
    person = site.cast.user("member")
    person.display_name, person.first_name, person.last_name = "", "Maria", "Novak"
    person.save()
    for asked in ("maria", "NOVAK", "novak maria", "member@example", "ria ova"):
        assert len(rows(text(site.owner().get(path(site), {"q": asked})))) == 1, asked
    assert "No matches" in text(site.owner().get(path(site), {"q": "maria admin"}))


def test_the_role_page_says_what_each_role_opens(site: Site) -> None:
    load_vendor("http://127.0.0.1:9/mcp", slug="other")
    for slug in ("fake", "other"):
        connect(site.cast.org, site.cast.user("owner"), slug)
    page = text(site.owner().get(path(site, "member-role", "member")))
    assert "Can use all connected vendors (2)." in page
    assert "none of the 2 connected vendors" in page
    ServerAccess.objects.create(organization=site.cast.org, membership=member_row(site), vendor="other")
    assert "Member would keep 1 of 2 vendors: Other." in text(site.owner().get(path(site, "member-role", "member")))
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
    page = site.owner().get(own)
    assert "only owner of Acme" in text(page)
    assert 'name="role"' not in text(page)
    refused = site.owner().post(own, {"role": "member"})
    assert refused.status_code == 403
    assert "You can’t change your own role. Another owner can." in text(refused)
    assert member_row(site, "owner").role == "owner"


def test_an_owner_is_warned_before_another_is_demoted(site: Site) -> None:
    Membership.objects.filter(user=site.cast.user("admin")).update(role="owner")
    page = site.owner().get(path(site, "member-role", "admin"))
    assert "Only an owner can make them an owner again" in text(page)
    assert "checked" not in text(page)
    assert site.owner().post(path(site, "member-role", "admin"), {"role": "admin"}).status_code == 302
    assert member_row(site, "admin").role == "admin"


def give_out(site: Site, who: str) -> None:
    """Tokens, an app, server access, a team and an invitation of one member, and the like in the other organization."""
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
    ServerAccess.objects.create(organization=site.cast.org, membership=membership, vendor="fake")
    team = Team.objects.create(organization=site.cast.org, name="Night shift")
    TeamMembership.objects.create(team=team, membership=membership)


def test_the_removal_names_what_ends_and_ends_it(site: Site) -> None:
    give_out(site, "admin")
    create_invitation(actor=site.cast.user("admin"), organization=site.cast.org)
    address = path(site, "member-remove", "admin")
    page = text(site.owner().get(address))
    assert "2 access tokens and 1 connected app" in page
    assert "access to 1 vendor: Fake" in page
    assert "membership in 1 team: Night shift" in page
    assert "1 pending invitation that they created" in page
    response = site.owner().post(address, follow=True)
    assert notices(response) == ["Admin was removed. Their access is revoked."]
    assert list(AccessToken.objects.values_list("organization_id", flat=True)) == [site.cast.other_org.id]
    assert list(TokenFamily.objects.values_list("organization_id", flat=True)) == [site.cast.other_org.id]
    assert not TeamMembership.objects.exists()
    assert not ServerAccess.objects.exists()
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
        assert "Only owners can remove admins and owners." in text(response)
    assert Membership.objects.filter(organization=site.cast.org).count() == 4


def test_the_only_owner_stays_and_learns_what_to_do(site: Site) -> None:
    own = path(site, "leave")
    for response in (site.owner().get(own), site.owner().post(own)):
        assert response.status_code == 409
        page = text(response)
        assert "You’re the only owner" in page
        assert f'href="{path(site, "organization-delete")}"' in page
        assert 'class="btn btn-danger"' not in page
    assert member_row(site, "owner").role == "owner"
    assert site.owner().get(path(site, "organization-delete")).status_code == 200
    assert not AdminAuditEntry.objects.filter(event_type="member.removed").exists()


@pytest.mark.parametrize("who", ["member", "admin", "owner"])
def test_anybody_leaves(site: Site, who: str) -> None:
    stranger = site.cast.user("stranger")
    Membership.objects.create(organization=site.cast.org, user=stranger, role="owner")
    Membership.objects.create(organization=site.cast.other_org, user=site.cast.user(who))
    browser, own = site.cast.client(who), path(site, "leave")
    page = text(browser.get(own))
    assert "Leave Acme?" in page
    assert "no connected apps, vendor access or teams here" in page
    response = browser.post(own, follow=True)
    assert response.redirect_chain[-1][0] == reverse("proxy_pages:home", args=[site.cast.other_org.id])
    assert notices(response) == ["You left Acme."]
    for address in (path(site), own):
        assert browser.get(address).status_code == 404
    assert browser.post(own).status_code == 404
    assert Membership.objects.filter(organization=site.cast.org).count() == 3
    left = AdminAuditEntry.objects.get(event_type="member.removed")
    person = str(site.cast.user(who).id)
    assert (left.org_id, left.actor_id, left.target_id) == (site.cast.org.id, person, person)


def test_leaving_names_what_ends_and_ends_it_here_only(site: Site) -> None:
    give_out(site, "member")
    browser = site.cast.client("member")
    page = text(browser.get(path(site, "leave")))
    assert "2 access tokens and 1 connected app" in page
    assert "access to 1 vendor: Fake" in page
    assert "membership in 1 team: Night shift" in page
    browser.post(path(site, "leave"))
    assert list(AccessToken.objects.values_list("organization_id", flat=True)) == [site.cast.other_org.id]
    assert list(TokenFamily.objects.values_list("organization_id", flat=True)) == [site.cast.other_org.id]
    assert not TeamMembership.objects.exists()
    assert not ServerAccess.objects.exists()


def test_leaving_with_nothing_but_an_open_link_says_that_nothing_ends(site: Site) -> None:
    create_invitation(actor=site.cast.user("admin"), organization=site.cast.org)
    page = text(site.cast.client("admin").get(path(site, "leave")))
    assert "You have no connected apps, vendor access or teams here." in page
    assert "This ends immediately" not in page
    assert "1 pending invitation</a> you created can still be used until revoked." in page
    removal = text(site.owner().get(path(site, "member-remove", "admin")))
    assert "1 pending invitation that they created" in removal


def test_a_form_to_leave_without_its_token_does_nothing(site: Site) -> None:
    browser = Browser(enforce_csrf_checks=True)
    browser.force_login(site.cast.user("member"), backend="orgs.signin.backend.IdentityBackend")
    token = hidden(browser.get(path(site, "leave")), "csrfmiddlewaretoken")
    assert browser.post(path(site, "leave")).status_code == 403
    assert member_row(site).role == "member"
    assert browser.post(path(site, "leave"), {"csrfmiddlewaretoken": token}).status_code == 302
    assert not Membership.objects.filter(organization=site.cast.org, user=site.cast.user("member")).exists()


@pytest.mark.parametrize("who", ["other_owner", "stranger", "nobody"])
def test_whoever_is_no_member_leaves_nothing(site: Site, who: str) -> None:
    expected = 302 if who == "nobody" else 404
    assert site.cast.client(who).get(path(site, "leave")).status_code == expected
    assert site.cast.client(who).post(path(site, "leave")).status_code == expected
    assert Membership.objects.count() == 4


def test_the_page_that_removes_leads_oneself_to_leaving(site: Site) -> None:
    own = path(site, "member-remove", "admin")
    for response in (site.cast.client("admin").get(own), site.cast.client("admin").post(own)):
        assert (response.status_code, response["Location"]) == (302, path(site, "leave"))
    assert member_row(site, "admin").role == "admin"


def test_the_profile_leads_to_leaving_each_organization(site: Site) -> None:
    page = text(site.cast.client("member").get("/profile"))
    assert f'href="{path(site, "leave")}"' in page
    assert str(site.cast.other_org.id) not in page


@pytest.mark.usefixtures("lapsed")
def test_people_are_managed_without_a_plan(site: Site) -> None:
    assert site.owner().post(path(site, "member-role", "admin"), {"role": "member"}).status_code == 302
    assert site.owner().post(path(site, "member-remove", "admin")).status_code == 302
    assert site.cast.client("member").post(path(site, "leave")).status_code == 302
