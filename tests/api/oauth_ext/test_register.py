"""POST /oauth/register."""

from __future__ import annotations

import json
import os
from datetime import timedelta

import pytest
from django.http import HttpResponse
from django.test import Client as Browser
from pytest_django.fixtures import Settings

from gateway.coordination.rules import Rule
from gateway.lib import clock
from oauth_ext.models import Client
from oauth_ext.services.cleanup import remove_expired_rows
from tests.api.oauth_ext.flow import Flow, make_flow
from tests.api.oauth_ext.test_token import refusal
from tests.factories.bearers import load_identity
from tests.factories.cast import Cast
from tests.factories.races import at_once
from tests.factories.registrations import BODIES

FLOOD = int(os.environ.get("REGISTRATION_FLOOD") or 3_000)  # clients that nobody uses: see CONTRIBUTING.md


def register(body: object, content_type: str = "application/json", **headers: str) -> HttpResponse:
    """POST a registration from a client without cookies."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    browser = Browser(enforce_csrf_checks=True)
    return browser.post("/oauth/register", data=data, content_type=content_type, headers=headers)


@pytest.mark.parametrize("who", BODIES)
def test_the_bodies_of_real_clients(db: None, who: str) -> None:
    answer = register(BODIES[who])
    assert answer.status_code == 201, answer.content
    assert answer["Content-Type"] == "application/json"
    assert (answer["Cache-Control"], answer["Pragma"]) == ("no-store", "no-cache")
    assert answer["Access-Control-Allow-Origin"] == "*"
    body = answer.json()
    assert body["token_endpoint_auth_method"] == "none"
    assert body["grant_types"] == ["authorization_code", "refresh_token"]
    assert body["response_types"] == ["code"]
    assert body["redirect_uris"] == BODIES[who]["redirect_uris"]
    assert body["client_name"] == BODIES[who]["client_name"]
    assert body["application_type"] == BODIES[who].get("application_type", "native")
    assert body["scope"] == BODIES[who].get("scope", "mcp:all")
    assert isinstance(body["client_id_issued_at"], int)
    assert None not in body.values()
    assert not {"client_secret", "registration_access_token", "registration_client_uri"} & set(body)


def test_the_stored_client(db: None) -> None:
    body = register({**BODIES["claude.ai"], "client_id": "svc_mine", "client_secret": "mine"}).json()
    row = Client.objects.get()
    assert row.client_id == body["client_id"]
    assert row.client_id.startswith("mcpc_")
    assert len(row.client_id) == 29
    assert (row.client_type, row.registration_source) == (Client.CLIENT_PUBLIC, Client.RegistrationSource.DCR)
    assert (row.organization_id, row.expires_at, row.last_used_at) == (None, None, None)
    assert row.redirect_uris.split() == body["redirect_uris"]
    assert row.registered_itself


@pytest.mark.parametrize("grant_type", ["client_credentials", "urn:ietf:params:oauth:grant-type:device_code"])
def test_a_registered_client_stays_public(db: None, grant_type: str) -> None:
    wish = {**BODIES["claude.ai"], "grant_types": [grant_type], "token_endpoint_auth_method": "client_secret_basic"}
    answer = register(wish)
    assert answer.status_code == 201
    assert answer.json()["grant_types"] == ["authorization_code", "refresh_token"]
    assert answer.json()["token_endpoint_auth_method"] == "none"


def test_scopes_that_do_not_exist_are_dropped(vendor: str) -> None:
    wish = {**BODIES["claude.ai"], "scope": "openid mcp:acme mcp:nope offline_access"}
    assert register(wish).json()["scope"] == "mcp:acme"


@pytest.mark.parametrize(
    "uris",
    [
        None,
        [],
        ["javascript:alert(1)"],
        ["http://evil.example/cb"],
        ["https://app.example/cb#f"],
        ["https://app.example/cb", "data:text/html,x"],
        [f"https://app.example/{number}" for number in range(11)],
    ],
)
def test_bad_redirect_addresses(db: None, uris: object) -> None:
    assert refusal(register({**BODIES["claude.ai"], "redirect_uris": uris})) == (400, "invalid_redirect_uri")
    assert not Client.objects.exists()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff",
        b'{"redirect_uris": ["https://a.example/"], "redirect_uris": ["https://b.example/"]}',
        b'{"redirect_uris": ["https://a.example/"], "client_name": "\\u0000"}',
        b'{"redirect_uris": ["https://a.example/"], "client_name": 1}',
        b'{"redirect_uris": ["https://a.example/"], "x": ' + b"[" * 100 + b"]" * 100 + b"}",
        b"redirect_uris=https%3A%2F%2Fa.example",
    ],
)
def test_bodies_that_are_no_metadata(db: None, body: bytes) -> None:
    assert refusal(register(body)) == (400, "invalid_client_metadata")
    assert not Client.objects.exists()


def test_too_large(db: None) -> None:
    assert refusal(register({**BODIES["claude.ai"], "client_name": "x" * 5_000_000})) == (413, "invalid_request")
    assert refusal(register(BODIES["claude.ai"], **{"Content-Encoding": "gzip"})) == (415, "invalid_request")


@pytest.mark.parametrize("content_type", ["application/json; charset=utf-8", "text/plain", "application/octet-stream"])
def test_the_media_type_is_not_asked_for(db: None, content_type: str) -> None:
    assert register(BODIES["claude.ai"], content_type).status_code == 201


@pytest.mark.parametrize(
    "header", ["Bearer", "Bearer \x7f", "Bearer x y", "Basic !!!", "Bearer " + "x" * 10_000, "\u00e9", "Negotiate"]
)
def test_no_authorization_header_matters(db: None, header: str) -> None:
    assert register(BODIES["claude.ai"], Authorization=header).status_code == 201


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_other_methods(db: None, method: str) -> None:
    answer = Browser().generic(method, "/oauth/register")
    assert refusal(answer) == (405, "invalid_request")
    assert answer["Allow"] == "POST, OPTIONS"


def test_preflight(db: None) -> None:
    answer = Browser().options("/oauth/register", headers={"Origin": "https://app.example"})
    assert (answer.status_code, answer["Access-Control-Allow-Origin"]) == (204, "*")


def test_one_address_may_register_so_often_a_minute(db: None, settings: Settings) -> None:
    settings.CLIENT_REGISTRATIONS = Rule(f"by one {clock.now().timestamp()}", limit=3, window_s=60)
    answers = [register(BODIES["claude.ai"]) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [201, 201, 201, 429]
    assert [answer["X-RateLimit-Remaining"] for answer in answers] == ["2", "1", "0", "0"]
    assert refusal(answers[3]) == (429, "rate_limited")
    assert 0 < int(answers[3]["Retry-After"]) <= 60
    assert (
        Browser()
        .post("/oauth/register", BODIES["claude.ai"], content_type="application/json", REMOTE_ADDR="192.0.2.7")
        .status_code
        == 201
    )
    spoofed = register(BODIES["claude.ai"], **{"X-Forwarded-For": "192.0.2.8"})
    assert spoofed.status_code == 429
    assert Client.objects.count() == 4


def test_all_addresses_together_may_register_so_often(db: None, settings: Settings) -> None:
    settings.CLIENT_REGISTRATIONS_OF_ALL = Rule(f"by all {clock.now().timestamp()}", limit=2, window_s=60)
    answers = [
        Browser().post(
            "/oauth/register", BODIES["claude.ai"], content_type="application/json", REMOTE_ADDR=f"192.0.2.{number}"
        )
        for number in range(3)
    ]
    assert [answer.status_code for answer in answers] == [201, 201, 429]


def test_a_table_full_of_clients_in_use_takes_no_more(db: None, settings: Settings) -> None:
    settings.REGISTERED_CLIENTS = 2
    assert [register(BODIES["claude.ai"]).status_code for _ in range(2)] == [201, 201]
    assert refusal(register(BODIES["claude.ai"])) == (503, "temporarily_unavailable")
    assert Client.objects.count() == 2


def test_a_flood_stays_within_the_table_and_drowns_nobody(cast: Cast, settings: Settings) -> None:
    flow = make_flow(cast)
    tokens = flow.tokens()
    settings.REGISTERED_CLIENTS = FLOOD
    flood = [
        Client(
            client_id=f"mcpc_flood{number}",
            client_type=Client.CLIENT_PUBLIC,
            authorization_grant_type=Client.GRANT_AUTHORIZATION_CODE,
            registration_source=Client.RegistrationSource.DCR,
            client_secret="client_sha256$$",
        )
        for number in range(FLOOD)
    ]
    Client.objects.bulk_create(flood, batch_size=500)
    Client.objects.filter(name="").update(created=clock.now() - timedelta(minutes=16))
    newcomers = [register(BODIES["Cursor"]) for _ in range(3)]
    assert [answer.status_code for answer in newcomers] == [201] * 3
    assert Client.objects.count() <= settings.REGISTERED_CLIENTS
    newcomer = Client.objects.get(client_id=newcomers[0].json()["client_id"])
    assert Flow(newcomer, cast.client("member"), "http://localhost:8787/callback").tokens()["scope"] == "mcp:all"
    assert flow.refresh(tokens["refresh_token"]).status_code == 200
    remove_expired_rows(now=clock.now() + timedelta(hours=24))
    assert {client.client_id for client in Client.objects.all()} == {flow.client.client_id, newcomer.client_id}


@pytest.mark.parametrize("who", BODIES)
def test_each_gets_a_working_token(cast: Cast, who: str) -> None:
    body = register(BODIES[who]).json()
    client = Client.objects.get(client_id=body["client_id"])
    for redirect_uri in body["redirect_uris"]:
        flow = Flow(client, cast.client("member"), redirect_uri)
        tokens = flow.tokens(scope=body["scope"])
        assert load_identity(tokens["access_token"]).client_id == client.client_id
        assert flow.refresh(tokens["refresh_token"]).status_code == 200


@pytest.mark.django_db(transaction=True)
def test_many_at_once_each_get_a_client_of_their_own() -> None:
    answers = at_once(*[lambda: register(BODIES["Cursor"])] * 20)
    assert [getattr(answer, "status_code", answer) for answer in answers] == [201] * 20
    assert Client.objects.count() == len({answer.json()["client_id"] for answer in answers}) == 20  # type: ignore[union-attr]
