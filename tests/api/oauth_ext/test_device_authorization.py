"""POST /oauth/device_authorization."""

from __future__ import annotations

import re
from datetime import timedelta
from urllib.parse import quote

import pytest
from django.test import Client as Browser
from pytest_django.fixtures import Settings

from gateway.coordination.rules import Rule
from gateway.lib import clock, secrets
from gateway.settings import limits
from oauth_ext import user_codes
from oauth_ext.models import Client, DeviceGrant
from tests.api.oauth_ext.conftest import Service, basic, post
from tests.api.oauth_ext.devices import credentials, start
from tests.api.oauth_ext.test_token import refusal


def test_a_service_client_gets_two_codes(service: Service) -> None:
    answer = start(credentials(service))
    assert answer.status_code == 200
    assert (answer["Cache-Control"], answer["Pragma"]) == ("no-store", "no-cache")
    body = answer.json()
    assert set(body) == {
        "device_code",
        "user_code",
        "verification_uri",
        "verification_uri_complete",
        "expires_in",
        "interval",
    }
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", body["device_code"])
    assert re.fullmatch(r"[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}", body["user_code"])
    assert body["verification_uri"] == "http://testserver/device"
    assert body["verification_uri_complete"] == f"http://testserver/device?user_code={quote(body['user_code'])}"
    assert (body["expires_in"], body["interval"]) == (600, 5)


@pytest.mark.usefixtures("stopped_clock")
def test_the_stored_device(service: Service) -> None:
    body = start(credentials(service), Authorization="").json()
    row = DeviceGrant.objects.get()
    assert bytes(row.device_code_sha256) == secrets.sha256(body["device_code"])
    assert bytes(row.user_code_hash) == user_codes.stored(body["user_code"].replace("-", ""))
    assert (row.client, row.scope, row.resource) == (service.client, "mcp", ["http://testserver/v1/mcp"])
    assert (row.requester_ip, row.interval_s, row.decision) == ("127.0.0.1", 5, "")
    assert row.expires_at == clock.now() + timedelta(seconds=600)


def test_http_basic(service: Service) -> None:
    assert start({}, Authorization=service.basic).status_code == 200
    assert start({"client_id": service.client.client_id}, Authorization=service.basic).status_code == 200


@pytest.mark.usefixtures("stopped_clock")
def test_times_come_from_the_settings(service: Service, settings: Settings) -> None:
    settings.DEVICE_CODE_TTL, settings.DEVICE_POLL_INTERVAL = 60, 2
    body = start(credentials(service)).json()
    assert (body["expires_in"], body["interval"]) == (60, 2)
    assert DeviceGrant.objects.get().expires_at == clock.now() + timedelta(seconds=60)


@pytest.mark.parametrize(("asked", "kept"), [("", "mcp"), ("mcp:all", "mcp:all"), ("mcp:acme mcp:acme", "mcp:acme")])
def test_scopes(service: Service, vendor: str, asked: str, kept: str) -> None:
    assert start({**credentials(service), "scope": asked}).status_code == 200
    assert DeviceGrant.objects.get().scope == kept


@pytest.mark.parametrize("asked", ["admin", "mcp:nope", " ", "mcp openid"])
def test_unknown_scopes(service: Service, asked: str) -> None:
    assert refusal(start({**credentials(service), "scope": asked})) == (400, "invalid_scope")
    assert not DeviceGrant.objects.exists()


def test_resources(service: Service, vendor: str) -> None:
    assert start({**credentials(service), "resource": "http://testserver/v1/acme/mcp"}).status_code == 200
    assert DeviceGrant.objects.get().resource == ["http://testserver/v1/acme/mcp"]
    foreign = start({**credentials(service), "resource": "https://else.example"})
    assert refusal(foreign) == (400, "invalid_target")


def test_public_clients_may_not(public_client: Client) -> None:
    client_id = public_client.client_id
    assert refusal(start({"client_id": client_id})) == (400, "unauthorized_client")
    assert refusal(start({"client_id": client_id, "client_secret": "x"})) == (400, "unauthorized_client")
    assert refusal(start({}, Authorization=basic(client_id, ""))) == (400, "unauthorized_client")
    assert not DeviceGrant.objects.exists()


def test_who_is_not_let_in(service: Service) -> None:
    client_id = service.client.client_id
    for fields in (
        {},
        {"client_id": "svc_unknown", "client_secret": service.secret},
        {"client_id": "mcpc_unknown"},
        {"client_id": client_id},
        {"client_id": client_id, "client_secret": "wrong"},
        {"client_secret": service.secret},
    ):
        assert refusal(start(fields)) == (401, "invalid_client"), fields
    for header in (basic(client_id, "wrong"), basic("svc_unknown", "x"), "Basic !!!"):
        answer = start({}, Authorization=header)
        assert refusal(answer) == (401, "invalid_client")
        assert answer["WWW-Authenticate"] == 'Basic realm="oauth"'
    assert refusal(start(credentials(service), Authorization=service.basic)) == (400, "invalid_request")
    Client.objects.filter(pk=service.client.pk).update(expires_at=clock.now())
    assert refusal(start(credentials(service))) == (401, "invalid_client")
    assert not DeviceGrant.objects.exists()


def test_malformed_requests(service: Service) -> None:
    path = "/oauth/device_authorization"
    assert refusal(post("client_id=a&client_id=b", path)) == (400, "invalid_request")
    assert refusal(post("{}", path, content_type="application/json")) == (400, "invalid_request")
    assert refusal(post(credentials(service), f"{path}?client_id=x")) == (400, "invalid_request")
    assert refusal(post("scope=" + "x" * 20_000, path)) == (413, "invalid_request")
    assert refusal(Browser().get(path)) == (405, "invalid_request")


def test_the_twenty_first_in_a_minute(service: Service, settings: Settings) -> None:
    assert (limits.DEVICE_STARTS.limit, limits.DEVICE_STARTS.window_s) == (20, 60)
    settings.DEVICE_STARTS = Rule(f"device {clock.now().timestamp()}", limit=20, window_s=60)
    answers = [start(credentials(service)) for _ in range(21)]
    assert [answer.status_code for answer in answers] == [200] * 20 + [429]
    assert refusal(answers[20]) == (429, "rate_limited")
    assert 0 < int(answers[20]["Retry-After"]) <= 60
    assert answers[0]["X-RateLimit-Remaining"] == "19"
    assert DeviceGrant.objects.count() == 20
    elsewhere = Browser().post("/oauth/device_authorization", credentials(service), REMOTE_ADDR="192.0.2.9")
    assert elsewhere.status_code == 400  # multipart: another fault, but not the limit
