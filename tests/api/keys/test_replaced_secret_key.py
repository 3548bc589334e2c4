"""SECRET_KEY is replaced: with its former value as a fallback everything signed goes on; without it nothing does."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.conf import LazySettings
from django.http import HttpResponse
from django.test import Client as Browser
from django.test import RequestFactory

from gateway.lib.keyed_digests import keyed_digest, known_digests
from gateway.web import form_idempotency
from orgs.models import Organization, Team
from orgs.services.invitation_sealing import token_of
from orgs.services.invitations import create_invitation
from tests.api.oauth_ext.conftest import make_service
from tests.api.oauth_ext.devices import start_device
from tests.factories.api import Api
from tests.factories.cast import Cast

NEW = "the value after that of the suite: 9876543210zyxwvu"
NEXT = re.compile(r'<http://testserver/api(?P<path>[^>]+)>; rel="next"')
TEAMS = "/orgs/{org}/teams"
Replace = Callable[[], None]


@pytest.fixture(params=[True, False], ids=["with a fallback", "without one"])
def keeps_former(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def replace(settings: LazySettings, keeps_former: bool) -> Replace:
    def replaced() -> None:
        former, settings.SECRET_KEY = settings.SECRET_KEY, NEW
        settings.SECRET_KEY_FALLBACKS = [former] if keeps_former else []

    return replaced


def test_a_form_that_is_open(cast: Cast, replace: Replace, keeps_former: bool) -> None:
    token = token_of(create_invitation(actor=cast.user("owner"), organization=cast.org))
    browser = Browser(enforce_csrf_checks=True)
    browser.force_login(cast.user("stranger"), backend="orgs.signin.backend.IdentityBackend")
    browser.get(f"/invite/{token}", headers={"Accept": "text/html"})
    fields = {"csrfmiddlewaretoken": browser.cookies["gateway_csrf"].value}
    replace()
    answer = browser.post(f"/invite/{token}", fields, headers={"Accept": "text/html"})
    joined = (303, f"/orgs/{cast.org.id}")
    assert ((answer.status_code, answer.get("Location")) == joined) is keeps_former


def test_the_key_of_a_form(cast: Cast, replace: Replace, keeps_former: bool) -> None:
    request = RequestFactory().post("/")
    request.user = cast.user("owner")
    key = form_idempotency.new_key(request)
    request.POST = {form_idempotency.FIELD: key}  # type: ignore[assignment]
    replace()
    assert form_idempotency.claim_key(request) is keeps_former


def test_the_cursor_of_a_list(api: Api, replace: Replace, keeps_former: bool) -> None:
    for number in range(3):
        Team.objects.create(organization=api.cast.org, name=f"Team {number}")
    page = api.send("admin", "GET", f"{TEAMS}?limit=2")
    following = NEXT.search(page["Link"])
    assert following is not None
    replace()
    assert api.send("admin", "GET", following["path"]).status_code == (200 if keeps_former else 400)


def test_a_repeated_request(api: Api, replace: Replace, keeps_former: bool) -> None:
    def create() -> HttpResponse:
        return api.send("admin", "POST", "/orgs", {"name": "Initech"}, headers={"Idempotency-Key": "first-try"})

    first = create()
    replace()
    again = create()
    assert (first.status_code, again.status_code) == (201, 201 if keeps_former else 422)
    assert Organization.objects.filter(name="Initech").count() == 1


def test_a_device_that_waits(cast: Cast, replace: Replace, keeps_former: bool) -> None:
    device = start_device(make_service(cast))
    replace()
    device.decide(cast.client("member"))
    assert (device.row.decision == "approved") is keeps_former


def test_digests_are_stored_under_the_new_value_and_found_under_both(settings: LazySettings, replace: Replace) -> None:
    before = keyed_digest("salt", "value")
    replace()
    after = keyed_digest("salt", "value")
    known = known_digests("salt", "value")
    assert after != before
    assert known[0] == after
    assert (before in known) is bool(settings.SECRET_KEY_FALLBACKS)
    assert known_digests("salt", "another") != known
