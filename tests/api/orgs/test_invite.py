"""GET, POST /invite/:token."""

from __future__ import annotations

import json
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client as Browser
from django.urls import reverse

from billing.models import Subscription
from gateway.lib import clock
from orgs.models import Invitation, Membership, User
from orgs.services.invitation_sealing import token_of
from orgs.services.invitations import accept_invitation, create_invitation
from tests.factories.api import Api
from tests.factories.cast import Cast, make_person
from tests.factories.races import refusals_at_once

HTML = {"Accept": "text/html,application/xhtml+xml"}


def invite(cast: Cast, **options: Any) -> tuple[Invitation, str]:
    invitation = create_invitation(actor=cast.user("admin"), organization=cast.org, **options)
    token = token_of(invitation)
    assert token is not None
    return invitation, token


def post(cast: Cast, who: str, token: str, **headers: str) -> HttpResponse:
    return cast.client(who).post(f"/invite/{token}", headers=headers)  # type: ignore[return-value]


def outcome(answer: HttpResponse) -> tuple[int, str]:
    return answer.status_code, json.loads(answer.content)["error"]


def test_a_script_with_a_session_joins(api: Api, epochs_to_bump: list[str]) -> None:
    _, token = invite(api.cast)
    answer = post(api.cast, "stranger", token)
    assert answer.status_code == 200
    assert json.loads(answer.content) == {
        "organization": {"id": str(api.cast.org.id), "name": "Acme"},
        "role": "member",
        "alreadyMember": False,
    }
    assert Membership.objects.get(user=api.cast.user("stranger")).organization_id == api.cast.org.id
    assert api.events() == ["invitation.created", "invitation.accepted"]
    assert f"subject:{api.cast.user('stranger').id}" in epochs_to_bump
    again = json.loads(post(api.cast, "stranger", token).content)
    assert again["alreadyMember"] is True
    assert Invitation.objects.get().use_count == 1


def test_somebody_who_belongs_stays_what_they_are(api: Api) -> None:
    _, token = invite(api.cast)
    answer = json.loads(post(api.cast, "owner", token).content)
    assert (answer["role"], answer["alreadyMember"]) == ("owner", True)
    assert Invitation.objects.get().use_count == 0


def test_looking_consumes_nothing_and_needs_no_session(api: Api) -> None:
    _, token = invite(api.cast)
    for who in ("nobody", "stranger", "member"):
        for method in ("get", "head"):
            assert getattr(api.cast.client(who), method)(f"/invite/{token}").status_code == 200
    page = api.cast.client("nobody").get(f"/invite/{token}").content.decode()
    assert "Acme" in page
    assert f"/signin?next=%2Finvite%2F{token}" in page
    assert Invitation.objects.get().use_count == 0
    assert Membership.objects.count() == 4


def test_the_page_says_who_invites_until_when_and_how_it_stands(api: Api) -> None:
    invitation, token = invite(api.cast)
    page = api.cast.client("stranger").get(f"/invite/{token}").content.decode()
    assert "Join Acme</h1>" in page
    assert "Sent by Admin." in page
    assert f'datetime="{invitation.expires_at:%Y-%m-%dT%H:%M:%S}Z"' in page
    assert "re in Acme</h1>" in api.cast.client("member").get(f"/invite/{token}").content.decode()
    Invitation.objects.filter(pk=invitation.pk).update(use_count=1)
    used = api.cast.client("stranger").get(f"/invite/{token}").content.decode()
    assert "Already used</h1>" in used
    assert "Join Acme" not in used
    assert "Sent by" not in used


def test_another_account_may_sign_out_and_not_join(api: Api) -> None:
    _, token = invite(api.cast, email="somebody@example.com")
    page = api.cast.client("stranger").get(f"/invite/{token}").content.decode()
    assert ">Join Acme</button>" not in page
    assert "You are signed in as stranger@example.com." in page
    assert f'action="{reverse("oidc_logout")}"' in page
    _, own = invite(api.cast, email="stranger@example.com")
    assert ">Join Acme</button>" in api.cast.client("stranger").get(f"/invite/{own}").content.decode()


def test_a_browser_joins_with_its_form(api: Api) -> None:
    _, token = invite(api.cast)
    browser = Browser(enforce_csrf_checks=True)
    browser.force_login(api.cast.user("stranger"), backend="orgs.signin.backend.IdentityBackend")
    assert browser.post(f"/invite/{token}", headers=HTML).status_code == 403
    assert not Membership.objects.filter(user=api.cast.user("stranger")).exists()
    browser.get(f"/invite/{token}", headers=HTML)
    form_token = browser.cookies["gateway_csrf"].value
    answer = browser.post(f"/invite/{token}", {"csrfmiddlewaretoken": form_token}, headers=HTML)
    assert (answer.status_code, answer["Location"]) == (303, f"/orgs/{api.cast.org.id}")


def test_a_foreign_page_makes_nobody_join(api: Api) -> None:
    _, token = invite(api.cast)
    assert outcome(post(api.cast, "stranger", token, **{"Sec-Fetch-Site": "cross-site"})) == (403, "cross_site")
    assert outcome(post(api.cast, "stranger", token, Origin="https://evil.example")) == (403, "cross_site")
    assert Invitation.objects.get().use_count == 0


def test_nobody_is_sent_to_sign_in(api: Api) -> None:
    _, token = invite(api.cast)
    assert outcome(post(api.cast, "nobody", token)) == (401, "unauthenticated")
    answer = post(api.cast, "nobody", token, **HTML)
    assert (answer.status_code, answer["Location"]) == (302, f"/signin?next=%2Finvite%2F{token}")


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ({"expires_at": clock.now() - timedelta(seconds=1)}, (410, "invitation_expired")),
        ({"use_count": 1}, (410, "invitation_used")),
        ({"revoked_at": clock.now()}, (404, "invitation_not_found")),
        ({"email": "somebody@example.com"}, (403, "invitation_email_mismatch")),
    ],
)
def test_a_link_that_is_over_or_for_somebody_else(api: Api, state: dict[str, Any], expected: tuple[int, str]) -> None:
    invitation, token = invite(api.cast)
    Invitation.objects.filter(pk=invitation.pk).update(**state)
    assert outcome(post(api.cast, "stranger", token)) == expected
    page = post(api.cast, "stranger", token, **HTML, Origin="http://testserver")
    assert page.status_code == expected[0]
    assert b"<html" in page.content
    assert not Membership.objects.filter(user=api.cast.user("stranger")).exists()
    assert Invitation.objects.get().use_count == state.get("use_count", 0)


def test_an_unknown_link(api: Api) -> None:
    assert outcome(post(api.cast, "stranger", "x" * 43)) == (404, "invitation_not_found")
    assert api.cast.client("stranger").get(f"/invite/{'x' * 43}").status_code == 404


def test_a_bound_link_takes_its_address_in_any_case(api: Api) -> None:
    _, token = invite(api.cast, email="Stranger@Example.com")
    assert post(api.cast, "stranger", token).status_code == 200


@pytest.mark.parametrize(
    ("address", "verified", "bound_to"),
    [
        ("stranger@example.com", False, "stranger@example.com"),  # claimed, and nobody vouches for it
        ("stranger@strasse.example", True, "stranger@straße.example"),  # another domain, the same to casefold
        ("", True, "stranger@example.com"),
    ],
)
def test_a_bound_link_takes_no_address_that_is_not_the_persons(
    api: Api, address: str, verified: bool, bound_to: str
) -> None:
    _, token = invite(api.cast, email=bound_to)
    User.objects.filter(pk=api.cast.user("stranger").pk).update(email=address, email_verified=verified)
    assert outcome(post(api.cast, "stranger", token)) == (403, "invitation_email_mismatch")
    assert Invitation.objects.get().use_count == 0
    assert not Membership.objects.filter(user=api.cast.user("stranger")).exists()


@pytest.mark.usefixtures("lapsed")
def test_nobody_joins_a_lapsed_organization(api: Api) -> None:
    _, token = invite(api.cast)
    assert outcome(post(api.cast, "stranger", token)) == (402, "subscription_required")
    assert post(api.cast, "member", token).status_code == 200
    assert Invitation.objects.get().use_count == 0
    Subscription.objects.create(organization=api.cast.org, status="active")
    assert post(api.cast, "stranger", token).status_code == 200


def test_five_tries_in_a_quarter_of_an_hour(api: Api) -> None:
    _, token = invite(api.cast)
    answers = [post(api.cast, "stranger", f"{number:043}") for number in range(5)]
    assert [answer.status_code for answer in answers] == [404] * 5
    refused = post(api.cast, "stranger", token)
    assert outcome(refused) == (429, "rate_limited")
    assert 800 < int(refused["Retry-After"]) <= 900
    assert refused["RateLimit-Policy"] == '"invitation-accept";q=5;w=900'
    assert not Membership.objects.filter(user=api.cast.user("stranger")).exists()


def test_of_fifty_at_once_one_joins(committed_cast: Cast) -> None:
    _, token = invite(committed_cast)
    people = [make_person(f"person_{number}") for number in range(50)]
    codes = refusals_at_once(*[partial(accept_invitation, user=user, token=token) for user in people])
    assert codes == ["", *["invitation_used"] * 49]
    assert Membership.objects.filter(organization=committed_cast.org).count() == 4
    assert Invitation.objects.get().use_count == 1
