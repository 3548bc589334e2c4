"""Whoever has not said who they are is counted for their address, on every endpoint that has no limit of its own."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.http import HttpResponse
from django.test import Client as Browser
from pytest_django.fixtures import Settings

from gateway.coordination.rules import Rule
from gateway.lib import clock
from tests.api.oauth_ext.conftest import Service, at_once, make_service, post
from tests.api.oauth_ext.flow import make_flow
from tests.factories.cast import Cast

Ask = Callable[..., HttpResponse]
MACHINES: dict[str, Ask] = {
    "token": lambda **peer: form("/oauth/token", "grant_type=client_credentials&client_id=x", **peer),
    "unreadable token request": lambda **peer: form("/oauth/token", "a=1&a=1", **peer),
    "revoke": lambda **peer: form("/oauth/revoke", "token=x", **peer),
}
PAGES: dict[str, Ask] = {
    "authorize": lambda **peer: Browser().get("/oauth/authorize", {"client_id": "x"}, **peer),
    "sign-in": lambda **peer: Browser().get("/signin", **peer),
    "sign-in start": lambda **peer: Browser().get("/oidc/authenticate/", **peer),
    "sign-in end": lambda **peer: Browser().get("/oidc/callback/", {"error": "x"}, **peer),
}


def form(path: str, body: str, **peer: str) -> HttpResponse:
    """A form from a client without cookies."""
    return Browser().post(path, body, content_type="application/x-www-form-urlencoded", **peer)


@pytest.fixture(autouse=True)
def two_a_minute(settings: Settings, request: pytest.FixtureRequest) -> None:
    """A window that no other test has counted in."""
    settings.BACKSTOP = Rule(f"backstop {request.node.name} {clock.now().timestamp()}", limit=2, window_s=60)


@pytest.mark.parametrize("ask", [*MACHINES.values(), *PAGES.values()], ids=[*MACHINES, *PAGES])
def test_an_address_is_heard_so_often_a_minute(db: None, ask: Ask) -> None:
    answers = [ask() for _ in range(3)]
    assert 429 not in {answer.status_code for answer in answers[:2]}
    assert answers[2].status_code == 429
    assert 0 < int(answers[2]["Retry-After"]) <= 61
    assert answers[2]["RateLimit"].startswith('"backstop')
    assert answers[2]["X-RateLimit-Remaining"] == "0"
    assert ask(REMOTE_ADDR="198.51.100.7").status_code != 429


@pytest.mark.parametrize("ask", MACHINES.values(), ids=MACHINES)
def test_machines_are_told_in_their_shape(db: None, ask: Ask) -> None:
    heard, _, refused = ask(), ask(), ask()
    assert (heard["X-RateLimit-Limit"], heard["X-RateLimit-Remaining"]) == ("2", "1")
    body = refused.json()
    assert set(body) == {"error", "error_description"}
    assert body["error"] == "rate_limited"
    assert refused["Access-Control-Allow-Origin"] == "*"
    assert refused["Cache-Control"] == "no-store"


@pytest.mark.parametrize("ask", PAGES.values(), ids=PAGES)
def test_people_are_shown_a_page_that_leads_nowhere(db: None, ask: Ask) -> None:
    refused = [ask() for _ in range(3)][2]
    assert refused["Content-Type"].startswith("text/html")
    assert "Location" not in refused
    assert "That was too often" in refused.content.decode()


def test_all_endpoints_share_one_window(db: None) -> None:
    MACHINES["token"]()
    PAGES["sign-in"]()
    assert {ask().status_code for ask in [*MACHINES.values(), *PAGES.values()]} == {429}


def test_a_household_is_one_address_and_what_a_client_writes_is_none(db: None) -> None:
    for number in range(2):
        assert MACHINES["token"](REMOTE_ADDR=f"2001:db8:1:2::{number}").status_code == 401
    assert MACHINES["token"](REMOTE_ADDR="2001:db8:1:2:ffff::9").status_code == 429
    assert MACHINES["token"](REMOTE_ADDR="2001:db8:1:3::1").status_code == 401
    statuses = [MACHINES["token"](HTTP_X_FORWARDED_FOR=f"203.0.113.{number}").status_code for number in range(3)]
    assert statuses == [401, 401, 429]


def test_behind_a_trusted_proxy_the_hop_before_it_counts(db: None, settings: Settings) -> None:
    settings.TRUSTED_PROXIES = ("127.0.0.1",)
    for _ in range(2):
        assert MACHINES["token"](HTTP_X_FORWARDED_FOR="8.8.8.8, 203.0.113.9").status_code == 401
    assert MACHINES["token"](HTTP_X_FORWARDED_FOR="9.9.9.9, 203.0.113.9").status_code == 429
    assert MACHINES["token"](HTTP_X_FORWARDED_FOR="203.0.113.10").status_code == 401


def test_somebody_signed_in_is_counted_as_themselves(cast: Cast) -> None:
    for _ in range(3):
        PAGES["authorize"]()
    member, owner = make_flow(cast), make_flow(cast, "owner")
    assert [member.authorize().status_code for _ in range(3)] == [302, 302, 429]
    assert owner.authorize().status_code == 302


@pytest.mark.parametrize("path", ["/device", "/oauth/authorize/consent?request=x"])
def test_the_pages_of_somebody_signed_in_are_counted_too(cast: Cast, path: str) -> None:
    browser = cast.client("member")
    assert 429 not in {browser.get(path).status_code, browser.post(path).status_code}
    assert (browser.get(path).status_code, cast.client("owner").get(path).status_code != 429) == (429, True)


def test_documents_and_endpoints_with_limits_of_their_own_are_no_part_of_it(cast: Cast, settings: Settings) -> None:
    for _ in range(3):
        MACHINES["token"]()
    for path in ("/.well-known/oauth-authorization-server", "/.well-known/jwks.json", "/health"):
        assert Browser().get(path).status_code == 200
    service = make_service(cast)
    started = post(
        {"client_id": service.client.client_id, "client_secret": service.secret}, "/oauth/device_authorization"
    )
    assert started.status_code == 200
    assert int(started["X-RateLimit-Limit"]) == settings.DEVICE_STARTS.limit
    assert Browser().post("/oauth/register", "{}", content_type="application/json").status_code == 400
    # A browser asks for permission before each of its requests.
    assert Browser().options("/oauth/token").status_code == 204


@pytest.mark.django_db(transaction=True)
def test_at_once_not_one_more_passes(committed_cast: Cast, settings: Settings) -> None:
    settings.BACKSTOP = Rule(f"burst {clock.now().timestamp()}", limit=10, window_s=60)
    service: Service = make_service(committed_cast)
    statuses = [getattr(one, "status_code", one) for one in at_once(*[lambda: post(service.fields())] * 40)]
    assert sorted(statuses, key=str) == [200] * 10 + [429] * 30
