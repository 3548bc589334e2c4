"""Unauthenticated requests count for their address, on every endpoint without a limit of its own."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlencode

import pytest
from django.http import HttpResponse
from django.test import Client as Browser
from pytest_django.fixtures import Settings

from gateway.coordination import backend
from gateway.coordination.rules import Rule
from gateway.coordination.store import Admission, CoordinationUnavailable
from gateway.lib import clock
from oauth_ext import server
from tests.api.oauth_ext.conftest import Service, make_service, post
from tests.api.oauth_ext.flow import make_flow
from tests.factories.cast import Cast
from tests.factories.fixed_window import hold_window
from tests.factories.races import at_once

Ask = Callable[..., HttpResponse]
TOKENS: dict[str, Ask] = {
    "token": lambda **peer: form("/oauth/token", "grant_type=client_credentials&client_id=x", **peer),
    "unreadable token request": lambda **peer: form("/oauth/token", "a=1&a=1", **peer),
}
REVOKE: dict[str, Ask] = {"revoke": lambda **peer: form("/oauth/revoke", "token=x", **peer)}
MACHINES = {**TOKENS, **REVOKE}
AUTHORIZE: dict[str, Ask] = {
    "authorize": lambda **peer: Browser().get("/oauth/authorize", {"client_id": "x"}, **peer),
}
SIGN_IN: dict[str, Ask] = {
    "sign-in": lambda **peer: Browser().get("/signin", **peer),
    "sign-in start": lambda **peer: Browser().get("/oidc/authenticate/", **peer),
    "sign-in end": lambda **peer: Browser().get("/oidc/callback/", {"error": "x"}, **peer),
}
PAGES = {**AUTHORIZE, **SIGN_IN}


def form(path: str, body: str, **peer: str) -> HttpResponse:
    """A form from a client without cookies."""
    return Browser().post(path, body, content_type="application/x-www-form-urlencoded", **peer)


def grant(fields: dict[str, str], **peer: str) -> HttpResponse:
    """A token request with these fields."""
    return form("/oauth/token", urlencode(fields), **peer)


@pytest.fixture(autouse=True)
def two_a_minute(settings: Settings, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A window that no other test has counted in."""
    hold_window(monkeypatch)
    for name in ("BACKSTOP", "REFUSED_TOKEN_REQUESTS", "TOKENS_OF_CLIENT"):
        setattr(settings, name, Rule(f"{name} {request.node.name} {clock.now().timestamp()}", limit=2, window_s=60))


@pytest.mark.parametrize("ask", [*MACHINES.values(), *PAGES.values()], ids=[*MACHINES, *PAGES])
def test_an_address_is_heard_so_often_a_minute(db: None, ask: Ask) -> None:
    answers = [ask() for _ in range(3)]
    assert 429 not in {answer.status_code for answer in answers[:2]}
    assert answers[2].status_code == 429
    assert 0 < int(answers[2]["Retry-After"]) <= 61
    assert answers[2]["RateLimit"].startswith(('"BACKSTOP', '"REFUSED_TOKEN_REQUESTS'))
    assert answers[2]["X-RateLimit-Remaining"] == "0"
    assert ask(REMOTE_ADDR="198.51.100.7").status_code != 429


@pytest.mark.parametrize("ask", MACHINES.values(), ids=MACHINES)
def test_machines_get_the_oauth_error_format(db: None, ask: Ask) -> None:
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
    assert "Too many requests" in refused.content.decode()


def test_oauth_shares_one_window_sign_in_another_and_token_requests_have_theirs(cast: Cast) -> None:
    service = make_service(cast)
    REVOKE["revoke"]()
    AUTHORIZE["authorize"]()
    assert {ask().status_code for ask in [*REVOKE.values(), *AUTHORIZE.values()]} == {429}
    assert [ask().status_code for ask in SIGN_IN.values()][2] == 429
    assert {ask().status_code for ask in SIGN_IN.values()} == {429}
    assert post(service.fields()).status_code == 200
    assert [ask().status_code for ask in TOKENS.values()] == [401, 400]
    assert {ask().status_code for ask in TOKENS.values()} == {429}


def test_what_is_granted_uses_up_nobody_elses_window(cast: Cast, settings: Settings) -> None:
    """One address for many: a hosted client, an office. Each client there has a window of what it was granted."""
    first, second = make_service(cast), make_service(cast, organization=cast.other_org)
    for _ in range(3):  # a stranger names the client; what it is refused is not counted for the client
        stranger = grant({**first.fields(), "client_secret": "guessed"}, REMOTE_ADDR="198.51.100.7")
        assert stranger.status_code in {401, 429}
    granted = [post(first.fields()), grant({"grant_type": "client_credentials"}, HTTP_AUTHORIZATION=first.basic)]
    assert [(answer.status_code, answer["X-RateLimit-Remaining"]) for answer in granted] == [(200, "1"), (200, "0")]
    refused = post(first.fields())
    assert (refused.status_code, refused.json()["error"]) == (429, "rate_limited")
    assert refused["RateLimit"].startswith('"TOKENS_OF_CLIENT')
    assert 0 < int(refused["Retry-After"]) <= 61
    assert post(second.fields()).status_code == 200
    assert grant(first.fields(), REMOTE_ADDR="198.51.100.8").status_code == 200
    # None of it was a refusal of the address.
    assert [ask().status_code for ask in TOKENS.values()] == [401, 400]


def test_tokens_that_nobody_can_count_go_out_all_the_same(
    cast: Cast, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, counted = make_service(cast), backend.current().hit

    def hit(rule: Rule, key: str) -> Admission:
        if rule == settings.TOKENS_OF_CLIENT:
            raise CoordinationUnavailable("away")
        return counted(rule, key)

    monkeypatch.setattr(backend.current(), "hit", hit)
    assert post(service.fields()).status_code == 200


def test_an_address_that_was_refused_so_often_is_not_heard_for_a_while(cast: Cast) -> None:
    service = make_service(cast)
    assert [ask().status_code for ask in TOKENS.values()] == [401, 400]
    assert post(service.fields()).status_code == 429
    assert grant(service.fields(), REMOTE_ADDR="198.51.100.7").status_code == 200
    assert REVOKE["revoke"]().status_code != 429


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
    fields = {"client_id": service.client.client_id, "client_secret": service.secret, "token": "x"}
    statuses = [getattr(one, "status_code", one) for one in at_once(*[lambda: post(fields, "/oauth/revoke")] * 40)]
    assert sorted(statuses, key=str) == [200] * 10 + [429] * 30


def bogus(client_id: str, **peer: str) -> HttpResponse:
    """A code that was never issued, sent with the id of a client."""
    fields = {
        "grant_type": "authorization_code",
        "code": "x",
        "redirect_uri": "https://a.example/",
        "code_verifier": "v",
    }
    return grant({**fields, "client_id": client_id}, **peer)


def test_one_clients_faults_are_held_against_it_before_they_are_held_against_its_neighbours(
    cast: Cast, settings: Settings
) -> None:
    stamp = clock.now().timestamp()
    settings.REFUSED_TOKEN_REQUESTS = Rule(f"of address {stamp}", limit=6, window_s=60)
    settings.REFUSED_TOKENS_OF_CLIENT = Rule(f"of client {stamp}", limit=2, window_s=60)
    neighbour = make_service(cast)
    assert [bogus("mcpc_flood").status_code for _ in range(20)] == [401] * 2 + [429] * 18
    assert post(neighbour.fields()).status_code == 200
    assert bogus("mcpc_flood", REMOTE_ADDR="198.51.100.7").status_code == 401  # another client of that name


def test_a_client_that_got_tokens_here_is_heard_while_strangers_fill_the_window(cast: Cast, settings: Settings) -> None:
    stamp = clock.now().timestamp()
    settings.TOKENS_LATELY = Rule(f"lately {stamp}", limit=1_000, window_s=86_400)
    settings.TOKENS_OF_CLIENT = Rule(f"tokens {stamp}", limit=10, window_s=60)
    known, newcomer = make_service(cast), make_service(cast, organization=cast.other_org)
    assert post(known.fields()).status_code == 200
    assert [bogus(f"mcpc_{number}").status_code for number in range(4)] == [401, 401, 429, 429]
    assert post(known.fields()).status_code == 200
    assert post(newcomer.fields()).status_code == 429
    assert grant(known.fields(), REMOTE_ADDR="198.51.100.8").status_code == 200


@pytest.fixture
def three_refusals_of_a_client(settings: Settings) -> None:
    stamp = clock.now().timestamp()
    settings.REFUSED_TOKEN_REQUESTS = Rule(f"of address {stamp}", limit=100, window_s=60)
    settings.REFUSED_TOKENS_OF_CLIENT = Rule(f"of client {stamp}", limit=3, window_s=60)
    settings.TOKENS_OF_CLIENT = Rule(f"tokens {stamp}", limit=100, window_s=60)
    settings.BACKSTOP = Rule(f"pages {stamp}", limit=100, window_s=60)


def fill(client_id: str) -> None:
    """Strangers are refused in the client's name until its window is full."""
    while bogus(client_id).status_code != 429:
        pass


@pytest.mark.usefixtures("three_refusals_of_a_client")
def test_a_client_is_heard_by_its_secret_while_strangers_are_refused_in_its_name(cast: Cast) -> None:
    known, newcomer = make_service(cast), make_service(cast, organization=cast.other_org)
    assert post(known.fields()).status_code == 200
    for service in (known, newcomer):
        fill(service.client.client_id)
    assert [post(known.fields()).status_code for _ in range(5)] == [200] * 5
    assert grant({"grant_type": "client_credentials"}, HTTP_AUTHORIZATION=known.basic).status_code == 200
    for wrong in ("guessed", newcomer.secret, ""):
        assert post(known.fields(client_secret=wrong)).status_code == 429
    assert grant({**known.fields()}, HTTP_AUTHORIZATION=known.basic).status_code == 429  # two ways at once
    assert post(newcomer.fields()).status_code == 429  # no tokens from this address so far
    assert bogus(known.client.client_id).status_code == 429


@pytest.mark.usefixtures("three_refusals_of_a_client")
def test_an_app_is_heard_by_its_code_and_refresh_token_while_strangers_are_refused_in_its_name(cast: Cast) -> None:
    flow, other = make_flow(cast), make_flow(cast, "other_owner")
    first, of_other = flow.tokens()["refresh_token"], other.tokens()["refresh_token"]
    fill(flow.client.client_id)
    assert flow.redeem(flow.code()).status_code == 200
    second = flow.refresh(first)
    assert second.status_code == 200
    assert flow.refresh(second.json()["refresh_token"]).status_code == 200
    code_of_other = other.code()
    strangers = flow.refresh(of_other), flow.refresh("guessed"), flow.redeem(code_of_other), flow.redeem("guessed")
    for refused in strangers:
        assert (refused.status_code, refused.json()["error"]) == (429, "rate_limited")
    # Strangers' requests do not consume the code or token.
    assert (other.refresh(of_other).status_code, other.redeem(code_of_other).status_code) == (200, 200)


@pytest.mark.usefixtures("three_refusals_of_a_client")
def test_what_is_wrong_beside_an_own_credential_counts_for_that_credential(cast: Cast) -> None:
    service, flow = make_service(cast), make_flow(cast)
    assert post(service.fields()).status_code == 200
    refresh_token, code = flow.tokens()["refresh_token"], flow.code()
    for client_id in (service.client.client_id, flow.client.client_id):
        fill(client_id)
    own_faults: list[Callable[[], HttpResponse]] = [
        lambda: post(service.fields(scope="nonsense")),
        lambda: flow.redeem(code, code_verifier="w" * 43),
    ]
    for fault in own_faults:
        assert [fault().status_code for _ in range(5)] == [400] * 3 + [429] * 2
    assert post(service.fields()).status_code == 429
    assert flow.refresh(refresh_token).status_code == 200


@pytest.mark.usefixtures("three_refusals_of_a_client")
def test_nothing_that_is_no_credential_is_exchanged_in_a_full_window(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow, exchanged = make_flow(cast), []
    flow.tokens()
    fill(flow.client.client_id)
    endpoint = server.token_endpoint
    monkeypatch.setattr(server, "token_endpoint", lambda: exchanged.append(1) or endpoint())
    assert {bogus(flow.client.client_id).status_code for _ in range(20)} == {429}
    assert exchanged == []
    assert flow.redeem(flow.code()).status_code == 200
    assert exchanged == [1]


def test_ten_addresses_do_not_use_up_the_registrations_of_all(db: None, settings: Settings) -> None:
    stamp = clock.now().timestamp()
    settings.CLIENT_REGISTRATIONS = Rule(f"registrations {stamp}", limit=10, window_s=60)
    settings.CLIENT_REGISTRATIONS_OF_ALL = Rule(f"all registrations {stamp}", limit=12, window_s=60)
    settings.CLIENT_REGISTRATIONS_SHARE_KEPT, settings.CLIENT_REGISTRATIONS_FEW = 4, 2

    def register(address: str) -> int:
        body = '{"redirect_uris": ["https://app.example/cb"]}'
        return Browser().post("/oauth/register", body, content_type="application/json", REMOTE_ADDR=address).status_code

    assert [register("192.0.2.1") for _ in range(10)] == [201] * 8 + [429] * 2
    assert [register("192.0.2.2") for _ in range(3)] == [201, 201, 429]
    assert register("192.0.2.3") == 201
    assert [register("192.0.2.4") for _ in range(2)] == [201, 429]  # all are used up
