"""Rows 25 to 31: the authorization code flow."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
from django.test import Client as Browser

from gateway.lib import clock
from oauth_ext.models import AccessToken, Grant, TokenFamily
from orgs.models import Identity
from tests.api.oauth_ext.flow import WEB, Flow, make_flow, make_public_client
from tests.api.signin.test_sign_in import log_in, start
from tests.attacks.refusals import refused
from tests.attacks.table import attack
from tests.attacks.world import ADMIN_ROW, World
from tests.factories.provider import forget_provider
from tests.vendors.servers import SUITE_ORIGIN, demo_identity_provider

GIVEN = ("oauth_ext.AccessToken", "oauth_ext.RefreshToken", "oauth_ext.TokenFamily")


def authorize(world: World, flow: Flow, who: str | None = "member", **changes: Any) -> httpx.Response:
    return world.send("GET", f"/oauth/authorize?{flow.query(**changes)}", who=who)


def redeem(flow: Flow, code: str, **changes: str) -> dict[str, str]:
    """The form of a redemption."""
    known = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": flow.redirect_uri,
        "client_id": flow.client.client_id,
        "code_verifier": flow.verifier,
    }
    return {**known, **changes}


@attack(
    25, {"unknown": "mcpc_unknown", "empty": "", "none": None, "NUL": "\x00", "SQL": "' OR 1=1--", "twice": ["a", "b"]}
)
def a_client_of_nobody(world: World, client_id: object) -> None:
    flow = make_flow(world.cast)
    with world.watched():
        for who in ("member", None):
            refused(authorize(world, flow, who, client_id=client_id), 400)


REDIRECTS = {
    "another": "https://evil.example/cb",
    "a query": f"{WEB}?x=1",
    "a parameter": f"{WEB};p",
    "a user": "https://user@app.example/cb",
    "a fragment": f"{WEB}#",
    "another port": "https://app.example:8443/cb",
    "another case": "https://app.example/CB",
    "plain HTTP": "http://app.example/cb",
    "a script": "javascript:alert(1)",
    "none": None,
    "twice": [WEB, "https://evil.example/cb"],
}


@attack(25, REDIRECTS)
def a_redirect_address_of_nobody(world: World, redirect_uri: object) -> None:
    flow = make_flow(world.cast)
    with world.watched():
        for who in ("member", None):
            page = refused(authorize(world, flow, who, redirect_uri=redirect_uri), 400)
            assert "evil" not in page


@attack(
    26,
    {
        "none": {"code_challenge": None},
        "plain": {"code_challenge_method": "plain"},
        "no method": {"code_challenge_method": None},
        "10 characters": {"code_challenge": "x" * 10},
        "44 characters": {"code_challenge": "x" * 44},
    },
)
def no_proof_key(world: World, changes: dict[str, Any]) -> None:
    redirected_as(world, changes, "invalid_request")


@attack(
    27,
    {
        "token": ({"response_type": "token"}, "unsupported_response_type"),
        "admin": ({"scope": "admin"}, "invalid_scope"),
        "a vendor of nobody": ({"scope": "mcp:nope"}, "invalid_scope"),
    },
)
def what_cannot_be_asked_for(world: World, asked: tuple[dict[str, Any], str]) -> None:
    redirected_as(world, *asked)


def redirected_as(world: World, changes: dict[str, Any], error: str) -> None:
    """A signed-in person's app is told; a passer-by gets our page, for no link leads through us (D163)."""
    flow = make_flow(world.cast)
    with world.watched():
        answer = authorize(world, flow, **changes)
        assert answer.status_code == 302, answer.text
        assert answer.headers["Location"].startswith(f"{WEB}?")
        received = dict(parse_qsl(urlsplit(answer.headers["Location"]).query))
        assert set(received) == {"error", "error_description", "state", "iss"}
        assert (received["error"], received["state"], received["iss"]) == (error, "st4te", "http://testserver")
        assert answer.headers["X-Request-Id"]
        refused(authorize(world, flow, None, **changes), 400)


def another_client(world: World, flow: Flow) -> dict[str, str]:
    return {"client_id": make_public_client().client_id}


def an_old_code(world: World, flow: Flow) -> dict[str, str]:
    Grant.objects.update(expires=clock.now() - timedelta(seconds=1))
    return {}


@attack(
    28,
    {
        "wrong verifier": lambda world, flow: {"code_verifier": "x" * 43},
        "another client": another_client,
        "another address": lambda world, flow: {"redirect_uri": f"{WEB}/other"},
        "61 seconds old": an_old_code,
    },
)
def a_code_in_the_wrong_hands(world: World, change: Any) -> None:
    flow = make_flow(world.cast)
    code = flow.code()
    form = redeem(flow, code, **change(world, flow))
    with world.watched():
        refused(world.post("/oauth/token", form), 400, "invalid_grant")


@attack(28)
def a_code_lives_for_a_minute(world: World) -> None:
    flow = make_flow(world.cast)
    flow.code()
    life = Grant.objects.get().expires - clock.now()
    with world.watched():
        assert timedelta(seconds=50) < life <= timedelta(seconds=60)


@attack(28)
def a_code_used_twice(world: World) -> None:
    flow = make_flow(world.cast)
    form = redeem(flow, flow.code())
    first = world.post("/oauth/token", form).json()["access_token"]
    assert world.rpc(first, "ping").status_code == 200
    with world.watched(*GIVEN, ADMIN_ROW):
        refused(world.post("/oauth/token", form), 400, "invalid_grant")
        assert not TokenFamily.objects.exists()
    with world.watched():
        refused(world.rpc(first, "ping"), 401, "invalid_token")


@attack(29)
def a_code_used_fifty_times_at_once(world: World) -> None:
    flow = make_flow(world.cast)
    form = redeem(flow, flow.code())
    answers = world.wire.at_once(*[world.request("POST", "/oauth/token", form=form)] * 50)
    (given,) = [answer.json() for answer in answers if answer.status_code == 200]
    for answer in answers:
        if answer.status_code != 200:
            refused(answer, 400, "invalid_grant")
    with world.watched():
        refused(world.rpc(given["access_token"], "ping"), 401, "invalid_token")
        assert not AccessToken.objects.exists()


def without_state(world: World, callback: str, browser: Browser) -> tuple[str, str | None]:
    return "/oidc/callback/?code=x", cookie_of(browser)


def in_another_browser(world: World, callback: str, browser: Browser) -> tuple[str, str | None]:
    other = Browser()
    start(other)
    return callback, cookie_of(other)


def without_a_browser(world: World, callback: str, browser: Browser) -> tuple[str, str | None]:
    return callback, None


def a_second_time(world: World, callback: str, browser: Browser) -> tuple[str, str | None]:
    assert browser.get(callback).status_code == 302
    Identity.objects.all().delete()
    return callback, cookie_of(browser)


def cookie_of(browser: Browser) -> str:
    return "; ".join(f"{name}={morsel.value}" for name, morsel in browser.cookies.items())


@attack(
    30,
    {
        "no state": without_state,
        "another browser": in_another_browser,
        "no browser": without_a_browser,
        "a second time": a_second_time,
    },
)
def a_callback_of_somebody_else(world: World, bend: Any) -> None:
    with demo_identity_provider([SUITE_ORIGIN]) as idp:
        world.settings.OIDC_OP_DISCOVERY_URL = idp.discovery_url
        world.settings.OIDC_RP_CLIENT_ID = idp.client_id
        world.settings.OIDC_RP_CLIENT_SECRET = idp.client_secret
        forget_provider()
        browser = Browser()
        callback = log_in(start(browser), "ana@example.com")
        target, cookie = bend(world, callback, browser)
        headers = [("cookie", cookie)] if cookie else []
        with world.watched():
            refused(world.send("GET", target, headers=headers), 400)
            assert not Identity.objects.filter(sub="ana@example.com").exists()
            assert not Grant.objects.exists()
    forget_provider()


@attack(31)
def a_consent_page_in_a_frame(world: World) -> None:
    flow = make_flow(world.cast)
    page = flow.ask()
    with world.watched():
        shown = world.send("GET", page, headers=[("cookie", cookie_of(flow.browser))])
        assert shown.status_code == 200, (shown.status_code, shown.headers)
        policy = shown.headers["Content-Security-Policy"]
        assert "frame-ancestors 'none'" in policy, policy
        assert shown.headers["X-Frame-Options"] == "DENY"


@attack(31, {"no token": "", "a token of nobody": "x" * 64})
def consent_without_the_forms_token(world: World, token: str) -> None:
    flow = make_flow(world.cast)
    page = flow.ask()
    form = {"action": "allow", "organization": str(world.cast.org.id), "csrfmiddlewaretoken": token}
    session = ("cookie", cookie_of(flow.browser))
    with world.watched():
        refused(world.post(page, form, headers=[session], accept="text/html"), 403)
        refused(world.post(page, form, headers=[session]), 403, "csrf_failed")
        refused(world.post(page, form, headers=[session, ("origin", "https://evil.example")]), 403, "cross_site")
        assert not Grant.objects.exists()
