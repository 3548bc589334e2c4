"""Credentials and keys of a team: stored, replaced and deleted on their own page, bound and unbound on the team's."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client as Browser

from audit.models import AdminAuditEntry
from credentials.credential_scope import CredentialScope
from credentials.models import Credential
from credentials.selectors import vendors_at
from orgs.models import Team
from tests.api.pages.conftest import Site, hidden, notices, text
from tests.api.pages.test_markup import Strict
from tests.factories.tenant import connect, load_vendor

SECRET = "key-nobody-may-read"
TOKEN = "csrfmiddlewaretoken"


@pytest.fixture
def team(site: Site) -> Team:
    """A team; another of the same name in the other organization."""
    Team.objects.create(organization=site.cast.other_org, name="Night shift")
    return Team.objects.create(organization=site.cast.org, name="Night shift")


def path(site: Site, team: Team, vendor: str = "fake") -> str:
    return site.path("credentials:team-credential", str(team.id), vendor)


def make_key(
    site: Site, name: str, *, team: Team | None = None, slug: str = "fake", foreign: bool = False
) -> Credential:
    organization = site.cast.other_org if foreign else site.cast.org
    owner = site.cast.user("other_owner" if foreign else "owner")
    place = {"team": team, "name": name}
    return connect(organization, owner, slug, CredentialScope.NAMED_KEY, place, apiKey=SECRET)


def on_team(site: Site, team: Team, **fields: str) -> Any:
    return site.cast.client("admin").post(site.path("orgs:team-access", str(team.id)), fields, follow=True)


def bound(key: Credential) -> object:
    return Credential.objects.values_list("team_id", flat=True).get(pk=key.pk)


def test_credentials_are_stored_replaced_and_deleted(site: Site, team: Team) -> None:
    browser = site.cast.client("admin")
    response = browser.post(path(site, team), {"apiKey": f" {SECRET} "}, follow=True)
    assert notices(response)[0] == "The Fake credentials for Night shift are saved and verified."
    assert site.asked == [{"X-Api-Key": SECRET}]
    stored = Credential.objects.get()
    assert (stored.scope, stored.team_id, stored.organization_id) == ("team", team.id, site.cast.org.id)
    page = text(browser.get(path(site, team)))
    assert "Replace the team" in page
    assert 'type="password"' in page
    browser.post(path(site, team), {"apiKey": "another"}, follow=True)
    assert Credential.objects.get().revision == 2
    response = browser.post(f"{path(site, team)}/delete", {}, follow=True)
    assert notices(response) == ["The Fake credentials of Night shift were deleted."]
    assert not Credential.objects.exists()
    assert browser.post(f"{path(site, team)}/delete", {}).status_code == 404
    events = AdminAuditEntry.objects.filter(event_type__startswith="credential.").order_by("timestamp", "id")
    kinds = [event.partition(".")[2] for event in events.values_list("event_type", flat=True)]
    assert kinds == ["created", "replaced", "deleted"]


def test_no_page_shows_what_is_stored(site: Site, team: Team) -> None:
    site.owner().post(path(site, team), {"apiKey": SECRET})
    make_key(site, "Reporting", team=team)
    for address in (path(site, team), site.path("orgs:team-access", str(team.id)), site.path("orgs:teams")):
        assert SECRET not in text(site.owner().get(address))


@pytest.mark.parametrize(
    ("status", "key", "shown"),
    [
        (401, "a-wrong-key", "Fake rejected these credentials (401). Nothing was saved."),
        (200, "", "This field is required."),
        (200, "two\nlines-of-key", "line"),
    ],
)
def test_what_is_refused_is_not_stored_nor_shown(site: Site, team: Team, status: int, key: str, shown: str) -> None:
    site.vendor_status = status
    response = site.owner().post(path(site, team), {"apiKey": key})
    assert response.status_code == 422
    assert shown in text(response)
    assert not key or key not in text(response)
    assert not Credential.objects.exists()


def test_a_key_that_nobody_could_check_is_stored_and_marked(site: Site, team: Team) -> None:
    site.vendor_status = None
    response = site.owner().post(path(site, team), {"apiKey": SECRET}, follow=True)
    assert "couldn’t verify" in notices(response)[0]
    assert "not yet" in text(response)


REFUSED = {"member": 403, "other_owner": 404, "stranger": 404, "nobody": 302}


@pytest.mark.parametrize("who", REFUSED)
def test_others_neither_see_nor_change_them(site: Site, team: Team, who: str) -> None:
    site.owner().post(path(site, team), {"apiKey": SECRET})
    browser = site.cast.client(who)
    chooser = site.path("credentials:team-credentials", str(team.id))
    assert browser.get(path(site, team)).status_code == REFUSED[who]
    assert browser.get(chooser, {"vendor": "fake"}).status_code == REFUSED[who]
    for address in (path(site, team), f"{path(site, team)}/delete"):
        assert browser.post(address, {"apiKey": "intruder"}).status_code == REFUSED[who]
    assert Credential.objects.get().revision == 1
    assert len(site.asked) == 1


def test_a_team_of_another_organization_is_not_there(site: Site, team: Team) -> None:
    site.owner().post(path(site, team), {"apiKey": SECRET})
    browser = site.cast.client("other_owner")
    foreign = path(site, team).replace(str(site.cast.org.id), str(site.cast.other_org.id))
    assert browser.get(foreign).status_code == 404
    assert browser.post(foreign, {"apiKey": "intruder"}).status_code == 404
    assert browser.post(f"{foreign}/delete", {}).status_code == 404
    assert site.owner().get(path(site, team, "nothing")).status_code == 404
    assert vendors_at(site.cast.org, CredentialScope.TEAM, team_id=team.id) == ["fake"]
    assert len(site.asked) == 1


def test_a_form_without_its_token_does_nothing(site: Site, team: Team) -> None:
    browser = Browser(enforce_csrf_checks=True)
    browser.force_login(site.cast.user("owner"), backend="orgs.signin.backend.IdentityBackend")
    token = hidden(browser.get(path(site, team)), TOKEN)
    assert browser.post(path(site, team), {"apiKey": SECRET}).status_code == 403
    assert not Credential.objects.exists()
    assert not site.asked
    assert browser.post(path(site, team), {"apiKey": SECRET, TOKEN: token}).status_code == 302
    assert browser.post(f"{path(site, team)}/delete", {}).status_code == 403
    assert Credential.objects.exists()


@pytest.mark.usefixtures("lapsed")
def test_it_needs_no_plan_as_over_the_api(site: Site, team: Team) -> None:
    assert site.owner().post(path(site, team), {"apiKey": SECRET}).status_code == 302
    assert site.owner().post(f"{path(site, team)}/delete", {}).status_code == 302


def test_the_form_is_reached_from_the_team(site: Site, team: Team) -> None:
    browser, chooser = site.owner(), site.path("credentials:team-credentials", str(team.id))
    assert chooser in text(browser.get(site.path("orgs:team-access", str(team.id))))
    assert browser.get(chooser, {"vendor": "fake"})["Location"] == path(site, team)
    for vendor in ("", "nothing", "//evil.example"):
        answer = browser.get(chooser, {"vendor": vendor}, follow=True)
        assert answer.redirect_chain == [(site.path("orgs:team-access", str(team.id)), 302)]
        assert notices(answer) == ["Choose a vendor first."]
    page = Strict(text(browser.get(path(site, team))))
    assert not page.inline
    assert all(field.get("id") in page.label_targets for field in page.fields)


def test_a_key_is_bound_unbound_and_bound_again(site: Site, team: Team) -> None:
    key = make_key(site, "Reporting")
    assert notices(on_team(site, team, action="bind-key", key=str(key.id))) == [
        "The key Reporting is assigned to the team."
    ]
    assert bound(key) == team.id
    response = on_team(site, team, action="unbind-key", key=str(key.id))
    assert bound(key) is None
    assert response.context["undo"]["fields"] == {"action": "bind-key", "key": str(key.id)}
    on_team(site, team, **response.context["undo"]["fields"])
    assert bound(key) == team.id


def test_a_key_that_is_foreign_taken_or_no_key_is_not_bound(site: Site, team: Team) -> None:
    other = Team.objects.create(organization=site.cast.org, name="Day shift")
    taken, foreign = make_key(site, "Taken", team=other), make_key(site, "Foreign", foreign=True)
    browser, address = site.cast.client("admin"), site.path("orgs:team-access", str(team.id))
    for asked in ("", "nothing", str(taken.id), str(foreign.id)):
        response = browser.post(address, {"action": "bind-key", "key": asked})
        assert response.status_code == 422
        assert 'id="key_error"' in text(response)
        assert "Foreign" not in text(response)
        assert browser.post(address, {"action": "unbind-key", "key": asked}).status_code == 404
    assert (bound(taken), bound(foreign)) == (other.id, None)


def test_one_key_of_a_vendor_for_a_team(site: Site, team: Team) -> None:
    make_key(site, "First", team=team)
    second = make_key(site, "Second")
    response = site.owner().post(
        site.path("orgs:team-access", str(team.id)), {"action": "bind-key", "key": str(second.id)}
    )
    assert response.status_code == 422
    assert "This team already has another key for this vendor. Unassign that one first." in text(response)
    assert bound(second) is None
    load_vendor("http://127.0.0.1:9/mcp", slug="other")
    third = make_key(site, "Third", slug="other")
    assert notices(on_team(site, team, action="bind-key", key=str(third.id))) == [
        "The key Third is assigned to the team."
    ]
