"""Signing out here ends the provider's session, and signing out there ends ours."""

from __future__ import annotations

import time
from datetime import timedelta
from functools import partial
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from django.conf import LazySettings
from django.http import HttpResponse
from django.test import Client as Browser

from gateway.lib import clock
from oauth_ext.models import TokenFamily
from orgs.models import Identity, UsedLogoutToken
from orgs.signin import backchannel, provider
from tests.api.oauth_ext.flow import make_flow
from tests.factories.cast import ISSUER, Cast
from tests.factories.provider import forget_provider
from tests.factories.races import at_once
from tests.vendors.processes import PLAIN_HTTP
from tests.vendors.servers import DemoIdentityProvider

pytest_plugins = ("tests.vendors.fixtures",)
KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
ENDPOINT = "/oidc/backchannel-logout/"


def sign_in(email: str) -> tuple[Browser, httpx.Cookies]:
    browser = Browser()
    answer = httpx.post(browser.get("/oidc/authenticate/")["Location"], data={"sub": email}, **PLAIN_HTTP)
    browser.get(answer.headers["Location"].removeprefix("http://testserver"))
    return browser, answer.cookies


def test_signing_out_goes_on_to_the_provider(db: None, idp: DemoIdentityProvider) -> None:
    browser, there = sign_in("ana@example.com")
    page = browser.post("/oidc/logout/", HTTP_ACCEPT="text/html")
    assert page.status_code == 200
    assert "You are signed out" in page.content.decode()
    assert browser.get("/profile").status_code == 302
    target = page["Refresh"].removeprefix("0;url=")
    asked = parse_qs(urlsplit(target).query)
    assert target.startswith(f"{idp.issuer}/oauth2/end_session?")
    assert asked["post_logout_redirect_uri"] == ["http://testserver/"]
    hint = jwt.decode(asked["id_token_hint"][0], options={"verify_signature": False})
    assert (hint["sub"], asked["client_id"]) == ("ana@example.com", [idp.client_id])
    assert httpx.get(target, cookies=there, **PLAIN_HTTP).headers["Location"] == "http://testserver/"
    silent = Browser().get("/oidc/authenticate/")["Location"] + "&prompt=none"
    assert "login_required" in httpx.get(silent, cookies=there, **PLAIN_HTTP).headers["Location"]


def test_scripts_and_nobody_stay_here(db: None, idp: DemoIdentityProvider, settings: LazySettings) -> None:
    browser, _ = sign_in("ana@example.com")
    assert browser.post("/oidc/logout/")["Location"] == "/"
    assert browser.get("/profile").status_code == 302
    assert Browser().post("/oidc/logout/", HTTP_ACCEPT="text/html")["Location"] == "/"
    settings.OIDC_END_SESSION = False
    browser, _ = sign_in("ana@example.com")
    assert browser.post("/oidc/logout/", HTTP_ACCEPT="text/html")["Location"] == "/"


def test_a_provider_that_is_away_keeps_nobody_signed_in(cast: Cast) -> None:
    forget_provider()
    browser = cast.client("member")
    assert browser.post("/oidc/logout/", HTTP_ACCEPT="text/html")["Location"] == "/"
    assert browser.get("/profile").status_code == 302


@pytest.fixture
def signing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cast's provider, with a key of ours."""
    known = provider.Provider(ISSUER, "", "", "", "", "")
    monkeypatch.setattr(provider, "current", lambda: known)
    monkeypatch.setattr(provider, "signing_key", lambda known, token: KEY.public_key())


def logout_token(key: Any = KEY, headers: dict[str, str] | None = None, **changes: Any) -> str:
    now = int(time.time())
    claims = {"iss": ISSUER, "aud": "gateway", "iat": now, "exp": now + 60, "jti": "one", "sub": "member"}
    claims |= {"events": {backchannel.EVENT: {}}, **changes}
    return jwt.encode({name: value for name, value in claims.items() if value is not None}, key, "RS256", headers)


def send(token: str) -> HttpResponse:
    return Browser(enforce_csrf_checks=True).post(ENDPOINT, {"logout_token": token})  # type: ignore[return-value]


def test_signing_out_there_ends_every_session_of_that_person(cast: Cast, signing: None) -> None:
    Identity.objects.update(confirmed_at=clock.now())
    sessions = [cast.client("member"), cast.client("member")]
    other = cast.client("admin")
    flow = make_flow(cast)
    flow.tokens()
    answer = send(logout_token())
    assert (answer.status_code, answer["Cache-Control"]) == (200, "no-store")
    assert [browser.get("/profile").status_code for browser in sessions] == [302, 302]
    assert sessions[0].get("/api/profile").status_code == 401
    assert other.get("/profile").status_code == 200
    assert TokenFamily.objects.filter(user=cast.user("member")).exists(), "signing out is no removal"
    ages = {row.sub: clock.now() - row.last_confirmed_at for row in Identity.objects.all()}
    assert ages["member"] >= timedelta(minutes=14), "the next refresh asks"
    assert ages["admin"] < timedelta(minutes=1)


@pytest.mark.parametrize(
    "changes",
    [
        {"iss": "https://other.example"},
        {"aud": "another"},
        {"exp": 1},
        {"iat": None},
        {"iat": 1},
        {"jti": None},
        {"sub": None},
        {"sub": None, "sid": "s"},
        {"sub": ""},
        {"nonce": "n"},
        {"events": None},
        {"events": {}},
        {"events": {backchannel.EVENT: None}},
        {"events": [backchannel.EVENT]},
        {"headers": {"typ": "at+jwt"}},
        {"key": rsa.generate_private_key(public_exponent=65537, key_size=2048)},
    ],
    ids=lambda changes: " ".join(changes),
)
def test_anything_else_ends_nothing(cast: Cast, signing: None, changes: dict[str, Any]) -> None:
    browser = cast.client("member")
    answer = send(logout_token(**changes))
    assert answer.status_code == 400
    assert b"invalid_request" in answer.content
    assert browser.get("/profile").status_code == 200
    assert not UsedLogoutToken.objects.exists()


def test_text_and_nothing_are_refused(cast: Cast, signing: None) -> None:
    assert send("text").status_code == 400
    assert Browser().post(ENDPOINT).status_code == 400
    assert Browser().get(ENDPOINT).status_code == 405


def test_somebody_unknown_is_no_error(cast: Cast, signing: None) -> None:
    assert send(logout_token(sub="nobody")).status_code == 200


def test_a_provider_that_is_away_sends_again(cast: Cast) -> None:
    forget_provider()
    assert send(logout_token()).status_code == 503


def test_a_token_counts_once(committed_cast: Cast, signing: None) -> None:
    token = logout_token()
    results = at_once(*[partial(backchannel.end_sessions, token)] * 50)
    refused = [result for result in results if isinstance(result, Exception)]
    assert [type(fault) for fault in refused] == [backchannel.InvalidLogoutToken] * 49
    committed_cast.user("member").refresh_from_db()
    browser = committed_cast.client("member")
    assert send(token).status_code == 400
    assert browser.get("/profile").status_code == 200, "an old token does not end a new session"


def test_used_tokens_are_forgotten_when_nobody_would_believe_them(cast: Cast, signing: None) -> None:
    UsedLogoutToken.objects.create(token_sha256=b"1" * 32, used_at=clock.now() - timedelta(hours=2))
    send(logout_token())
    assert UsedLogoutToken.objects.count() == 1
