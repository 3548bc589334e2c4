"""The page of pending invitations: what it lists, when it shows a link, and what closes its form."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.http import HttpResponse
from django.test import Client as Browser

from audit.models import AdminAuditEntry
from gateway.coordination.rules import Rule
from gateway.lib import clock
from orgs.models import Invitation, Membership
from orgs.services.invitation_sealing import token_of
from orgs.services.invitations import create_invitation
from tests.api.pages.conftest import Site, hidden, notices, text
from tests.factories.api import Api

LINK = re.compile(r'id="invitation-link" value="([^"]+)"')


def path(site: Site) -> str:
    return site.path("orgs:invitations")


def invite(site: Site, browser: Browser | None = None, **fields: str) -> HttpResponse:
    browser = browser or site.cast.client("admin")
    data = {"email": "", "max_uses": "1", "expires_in_days": "7", **fields}
    return browser.post(path(site), {**data, "form_key": hidden(browser.get(path(site)), "form_key")})  # type: ignore[return-value]


def shown_link(response: HttpResponse) -> str:
    found = LINK.search(text(response))
    assert found is not None
    return found[1]


def tokens(site: Site) -> list[str]:
    return [token for row in Invitation.objects.all() if (token := token_of(row))]


def test_a_link_is_shown_once_it_is_made_and_works(site: Site) -> None:
    response = invite(site, max_uses="3", expires_in_days="30")
    assert (response.status_code, response["Cache-Control"]) == (201, "no-store")
    made = Invitation.objects.get()
    assert (made.max_uses, made.email, made.created_by) == (3, "", site.cast.user("admin"))
    assert made.expires_at - made.created_at == timedelta(days=30)
    link = shown_link(response)
    assert link == f"{settings.BASE_URL}/invite/{token_of(made)}"
    assert text(response).count(link) == 1
    assert "Anyone with the link can join" in text(response)
    assert "up to 3 people" in text(response)
    stranger = site.cast.client("stranger")
    assert stranger.post(link.removeprefix(settings.BASE_URL), headers={"Accept": "text/html"}).status_code == 303
    assert Membership.objects.get(organization=site.cast.org, user=site.cast.user("stranger")).role == "member"


def test_no_listing_and_no_other_page_holds_a_token(site: Site) -> None:
    invite(site)
    revoke = site.path("orgs:invitation-revoke", str(Invitation.objects.get().id))
    for who in ("owner", "admin"):
        browser = site.cast.client(who)
        for address in (path(site), revoke, site.path("orgs:members"), site.path("proxy_pages:home")):
            page = text(browser.get(address))
            assert "/invite/" not in page
            assert not any(token in page for token in tokens(site))
    assert not any(token in str(row.__dict__) for row in AdminAuditEntry.objects.all() for token in tokens(site))


def test_an_admin_asks_for_a_link_again(site: Site) -> None:
    invite(site, email="new@example.com")
    made = Invitation.objects.get()
    response = site.owner().post(path(site), {"action": "link", "invitation": str(made.id)})
    assert (response.status_code, response["Cache-Control"]) == (200, "no-store")
    assert shown_link(response).endswith(str(token_of(made)))
    assert "Share this link with new@example.com. Only they can use it." in text(response)
    assert Invitation.objects.count() == 1


def test_a_link_whose_key_is_gone_is_not_invented(site: Site) -> None:
    invite(site)
    Invitation.objects.update(token_key_id="retired")
    made = Invitation.objects.get()
    response = site.owner().post(path(site), {"action": "link", "invitation": str(made.id)})
    assert "This link can’t be shown again" in text(response)
    assert "/invite/" not in text(response)


@pytest.mark.parametrize("which", ["", "nothing", "foreign", "revoked", "expired", "used"])
def test_a_link_that_is_over_or_foreign_is_not_shown(site: Site, which: str) -> None:
    foreign = create_invitation(actor=site.cast.user("other_owner"), organization=site.cast.other_org)
    made = create_invitation(actor=site.cast.user("owner"), organization=site.cast.org)
    changes: dict[str, dict[str, Any]] = {
        "revoked": {"revoked_at": clock.now()},
        "expired": {"expires_at": clock.now()},
        "used": {"use_count": 1},
    }
    asked = {"foreign": str(foreign.id), "": "", "nothing": "nothing"}.get(which, str(made.id))
    if which in changes:
        Invitation.objects.filter(pk=made.pk).update(**changes[which])
    browser = site.owner()
    assert browser.post(path(site), {"action": "link", "invitation": asked}).status_code == 404
    assert text(browser.get(path(site))).count("<tr>") == (1 if which in changes else 2) - (which in changes)
    if asked not in {"", "nothing"}:
        assert browser.get(site.path("orgs:invitation-revoke", asked)).status_code == 404


def test_the_list_says_for_whom_how_often_and_by_whom(site: Site) -> None:
    assert "No pending invitations" in text(site.owner().get(path(site)))
    invite(site, email="new@example.com")
    invite(site, max_uses="20")
    Invitation.objects.filter(max_uses=20).update(use_count=3)
    page = text(site.owner().get(path(site)))
    assert "2 pending invitations" in page
    assert "new@example.com" in page
    assert "3 of 20" in page
    assert page.count('data-label="Created by">Admin<') == 2
    assert page.index("Anyone with the link") < page.index(">new@example.com<"), "newest first"
    site.cast.user("admin").delete()
    assert text(site.owner().get(path(site))).count("a former member") == 2


def test_a_long_list_has_pages(site: Site) -> None:
    for _ in range(51):
        create_invitation(actor=site.cast.user("owner"), organization=site.cast.org)
    browser = site.owner()
    assert text(browser.get(path(site))).count("<tr>") == 51
    assert text(browser.get(path(site), {"page": "2"})).count("<tr>") == 2


def test_a_reload_makes_no_second_link(site: Site) -> None:
    browser = site.cast.client("admin")
    data = {"max_uses": "1", "expires_in_days": "7", "form_key": hidden(browser.get(path(site)), "form_key")}
    assert browser.post(path(site), data).status_code == 201
    again = browser.post(path(site), data, follow=True)
    assert again.redirect_chain == [(path(site), 302)]
    assert notices(again) == ["That form was already sent. Its invitation is in the list."]
    assert Invitation.objects.count() == 1


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("email", "nobody"),
        ("email", "a@example.com\r\nBcc: b@example.com"),
        ("max_uses", "0"),
        ("max_uses", "101"),
        ("max_uses", ""),
        ("max_uses", "two"),
        ("expires_in_days", "0"),
        ("expires_in_days", "31"),
    ],
)
def test_a_fault_is_shown_beside_its_field_and_the_rest_is_kept(site: Site, field: str, value: str) -> None:
    typed = {"email": "kept@example.com", "max_uses": "9", "expires_in_days": "11", field: value}
    response = invite(site, **typed)
    page = text(response)
    assert response.status_code == 422
    assert f'id="id_{field}_error"' in page
    assert f'<a href="#id_{field}">' in page
    for name, kept in typed.items():
        assert name == field or f'value="{kept}"' in page
    assert not Invitation.objects.exists()


def test_an_invitation_is_revoked_after_a_look(site: Site) -> None:
    made = create_invitation(actor=site.cast.user("admin"), organization=site.cast.org, max_uses=5)
    Invitation.objects.update(use_count=2)
    address = site.path("orgs:invitation-revoke", str(made.id))
    assert "2 of 5 joined with it and keep their access" in text(site.owner().get(address))
    assert Invitation.objects.get().revoked_at is None
    response = site.owner().post(address, follow=True)
    assert notices(response) == ["The invitation was revoked. Its link no longer works."]
    assert Invitation.objects.get().revoked_at is not None
    assert site.owner().get(address).status_code == site.owner().post(address).status_code == 404
    assert AdminAuditEntry.objects.filter(event_type="invitation.revoked").count() == 1


@pytest.mark.usefixtures("lapsed")
def test_without_a_plan_nothing_is_made_and_everything_typed_is_kept(site: Site) -> None:
    made = create_invitation(actor=site.cast.user("owner"), organization=site.cast.org)
    admin = text(site.cast.client("admin").get(path(site)))
    assert "need an active plan" in admin
    assert "An owner can renew it: Owner." in admin
    assert 'type="submit" disabled>Create invitation' in admin
    assert "The operators of this service set the plan." in text(site.owner().get(path(site)))
    response = invite(site, email="kept@example.com", max_uses="not even a number")
    assert response.status_code == 402
    assert 'value="kept@example.com"' in text(response)
    assert "id_max_uses_error" not in text(response), "the plan comes before the fields"
    assert "need an active plan" in text(response)
    assert Invitation.objects.count() == 1
    link = site.cast.client("admin").post(path(site), {"action": "link", "invitation": str(made.id)})
    assert link.status_code == 200
    assert site.owner().post(site.path("orgs:invitation-revoke", str(made.id))).status_code == 302
    assert Invitation.objects.get().revoked_at is not None


def test_ten_an_hour_over_page_and_api_together(site: Site, api: Api) -> None:
    browser = site.cast.client("admin")
    for number in range(10):
        if number % 2:
            assert api.send("admin", "POST", "/orgs/{org}/invitations", {}).status_code == 201
        else:
            assert invite(site, browser).status_code == 201
        if number == 6:
            assert "3 left this hour" in text(browser.get(path(site)))
    page = text(browser.get(path(site)))
    assert "10 invitations per hour" in page
    assert re.search(r"Try again in (5\d|60) minutes\.", page)
    assert 'type="submit" disabled>Create invitation' in page
    response = invite(site, browser, email="kept@example.com")
    assert response.status_code == 429
    assert 3000 < int(response["Retry-After"]) <= 3600
    assert 'value="kept@example.com"' in text(response)
    assert api.send("admin", "POST", "/orgs/{org}/invitations", {}).status_code == 429
    assert Invitation.objects.count() == 10
    made = Invitation.objects.all()[0]
    assert browser.post(path(site), {"action": "link", "invitation": str(made.id)}).status_code == 200
    assert browser.post(site.path("orgs:invitation-revoke", str(made.id))).status_code == 302
    assert invite(site, site.owner()).status_code == 201, "the window is each person's own"


def test_looking_too_often_ends_on_the_error_page(site: Site, settings: Any) -> None:
    settings.BACKSTOP = Rule("backstop-of-this-test", limit=2, window_s=60)
    browser = site.owner()
    assert [browser.get(path(site)).status_code for _ in range(3)] == [200, 200, 429]
    refused = browser.get(path(site))
    assert int(refused["Retry-After"]) <= 60
    assert "Too many requests" in text(refused)
