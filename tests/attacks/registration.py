"""Rows 37 to 43: clients that register themselves, and devices that wait for a person."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import httpx

from gateway.coordination.rules import Rule
from gateway.lib import clock
from oauth_ext.models import AccessToken, Client, DeviceGrant, TokenFamily
from oauth_ext.services.cleanup import remove_expired_rows
from tests.api.oauth_ext.conftest import Service, make_service
from tests.api.oauth_ext.devices import GRANT_TYPE, Device, credentials, start_device
from tests.api.oauth_ext.flow import make_flow, make_public_client
from tests.attacks.refusals import refused
from tests.attacks.table import attack
from tests.attacks.world import World
from tests.factories.registrations import BODIES

GOOD = BODIES["claude.ai"]
START = "/oauth/device_authorization"
DEVICE = "oauth_ext.DeviceGrant"


def register(world: World, body: object, **parts: Any) -> httpx.Response:
    return world.send("POST", "/oauth/register", body=body, **parts)


def with_address(*uris: str) -> dict[str, Any]:
    return {**GOOD, "redirect_uris": list(uris)}


@attack(
    37,
    {
        "a script": (with_address("javascript:alert(1)"), 400, "invalid_redirect_uri"),
        "plain HTTP": (with_address("http://evil.example/cb"), 400, "invalid_redirect_uri"),
        "a fragment": (with_address("https://app.example/cb#f"), 400, "invalid_redirect_uri"),
        "a user": (with_address("https://u@app.example/cb"), 400, "invalid_redirect_uri"),
        "a wildcard": (with_address("https://*.example/cb"), 400, "invalid_redirect_uri"),
        "none": (with_address(), 400, "invalid_redirect_uri"),
        "11": (with_address(*(f"https://app.example/{n}" for n in range(11))), 400, "invalid_redirect_uri"),
        "a name of 5 MB": ({**GOOD, "client_name": "x" * 5_000_000}, 413, "invalid_request"),
        "a number as name": ({**GOOD, "client_name": 1}, 400, "invalid_client_metadata"),
        "NUL in the name": ({**GOOD, "client_name": "a\x00"}, 400, "invalid_client_metadata"),
        "a list": ([GOOD], 400, "invalid_client_metadata"),
    },
)
def metadata_that_is_refused(world: World, asked: tuple[object, int, str]) -> None:
    body, status, error = asked
    with world.watched():
        refused(register(world, body), status, error)


@attack(37)
def an_id_of_ones_own_choice(world: World) -> None:
    with world.watched("oauth_ext.Client"):
        wish = {**GOOD, "client_id": world.tenant.client.client_id, "client_secret": "mine"}
        made = register(world, wish)
        assert made.status_code == 201
        assert made.json()["client_id"].startswith("mcpc_")
        assert "client_secret" not in made.json()
        assert Client.objects.filter(client_id=world.tenant.client.client_id).count() == 1


@attack(37)
def a_name_of_markup(world: World) -> None:
    name = "<script>alert(1)</script>"
    made = register(world, {**GOOD, "client_name": name}).json()
    flow = make_flow(world.cast)
    flow.client = Client.objects.get(client_id=made["client_id"])
    flow.redirect_uri = made["redirect_uris"][0]
    page = flow.ask()
    with world.watched():
        shown = flow.browser.get(page).content.decode()
        assert "<script>alert" not in shown
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown


@attack(
    38,
    {
        "device grant": {"grant_types": [GRANT_TYPE]},
        "a secret": {"token_endpoint_auth_method": "client_secret_basic"},
        "client credentials": {"grant_types": ["client_credentials"], "response_types": ["token"]},
    },
)
def more_than_a_public_client_gets(world: World, wish: dict[str, Any]) -> None:
    with world.watched("oauth_ext.Client"):
        made = register(world, {**GOOD, **wish})
        assert made.status_code == 201
        body = made.json()
        assert body["grant_types"] == ["authorization_code", "refresh_token"]
        assert (body["response_types"], body["token_endpoint_auth_method"]) == (["code"], "none")
        assert "client_secret" not in body


@attack(39)
def a_flood_of_registrations(world: World) -> None:
    """Bounded: 60 a minute of one address, a table of 100, and what nobody used goes after a day."""
    world.settings.REGISTERED_CLIENTS = 100
    flow = make_flow(world.cast)
    flow.tokens()
    answers = world.wire.at_once(*[world.request("POST", "/oauth/register", body=GOOD)] * 70)
    assert sorted(answer.status_code for answer in answers) == [201] * 60 + [429] * 10
    for answer in answers:
        if answer.status_code == 429:
            refused(answer, 429, "rate_limited")
            assert 0 < int(answer.headers["Retry-After"]) <= 60
    elsewhere = [world.request("POST", "/oauth/register", body=GOOD, address=f"10.78.0.{n}") for n in range(60)]
    assert {answer.status_code for answer in world.wire.at_once(*elsewhere)} <= {201, 503}
    of_dcr = Client.objects.filter(registration_source=Client.RegistrationSource.DCR)
    # As many requests as run at once may find the last place free.
    assert 100 <= of_dcr.count() <= 100 + world.settings.OAUTH_CONCURRENCY
    with world.watched():
        refused(register(world, GOOD, address="10.79.0.1"), 503, "temporarily_unavailable")
    remove_expired_rows(now=clock.now() + timedelta(hours=24))
    assert [client.client_id for client in of_dcr] == [flow.client.client_id]


def of_a_public_client(world: World) -> dict[str, str]:
    return {"client_id": make_public_client().client_id}


@attack(
    40,
    {
        "public client": (of_a_public_client, 400, "unauthorized_client"),
        "unknown": (lambda world: {"client_id": "svc_nobody", "client_secret": "x"}, 401, "invalid_client"),
        "wrong secret": (
            lambda world: {"client_id": world.tenant.client.client_id, "client_secret": "x"},
            401,
            "invalid_client",
        ),
        "no client": (lambda world: {"scope": "mcp"}, 401, "invalid_client"),
    },
)
def a_device_of_the_wrong_client(world: World, asked: tuple[Any, int, str]) -> None:
    form = asked[0](world)
    with world.watched():
        refused(world.post(START, form), *asked[1:])


@attack(40)
def a_device_started_too_often(world: World) -> None:
    form = {"client_id": world.tenant.client.client_id, "client_secret": world.tenant.client_secret}
    assert [world.post(START, form).status_code for _ in range(20)] == [200] * 20
    with world.watched():
        answer = world.post(START, form)
        refused(answer, 429, "rate_limited")
        assert 0 < int(answer.headers["Retry-After"]) <= 60


def poll(world: World, device: Device, **changes: str) -> httpx.Response:
    known = {"grant_type": GRANT_TYPE, "device_code": device.device_code, **credentials(device.service)}
    return world.post("/oauth/token", {**known, **changes})


@attack(41)
def a_poll_by_the_wrong_client(world: World) -> None:
    device = start_device(make_service(world.cast))
    another = credentials(Service(world.tenant.client, world.tenant.client_secret))
    public = make_public_client()
    with world.watched():
        refused(poll(world, device, **another), 400, "invalid_grant")
        form = {"grant_type": GRANT_TYPE, "device_code": device.device_code, "client_id": public.client_id}
        refused(world.post("/oauth/token", form), 400, "unauthorized_client")


@attack(41)
def a_poll_too_fast(world: World) -> None:
    device = start_device(make_service(world.cast))
    refused(poll(world, device), 400, "authorization_pending")
    with world.watched(DEVICE):
        refused(poll(world, device), 400, "slow_down")
        assert device.row.interval_s == 10


@attack(41)
def a_poll_after_the_denial(world: World) -> None:
    device = start_device(make_service(world.cast))
    assert device.decide(world.cast.client("member"), "deny").status_code == 200
    refused(poll(world, device), 400, "access_denied")
    with world.watched():
        assert not AccessToken.objects.exists()


@attack(41)
def a_poll_after_its_time(world: World) -> None:
    device = start_device(make_service(world.cast))
    device.decide(world.cast.client("member"))
    DeviceGrant.objects.update(expires_at=clock.now())
    with world.watched():
        refused(poll(world, device), 400, "expired_token")


@attack(41)
def a_second_success(world: World) -> None:
    device = start_device(make_service(world.cast))
    device.decide(world.cast.client("member"))
    assert poll(world, device).status_code == 200
    with world.watched():
        refused(poll(world, device), 400, "invalid_grant")


def decide(world: World, who: str, code: str, action: str = "approve") -> httpx.Response:
    """The form of the device page, with the token that the page gave."""
    shown = world.send("GET", "/device", who=who, accept="text/html")
    token = shown.cookies["gateway_csrf"]
    cookies = f"{world.cookie(who)}; gateway_csrf={token}"
    form = {"user_code": code, "action": action, "csrfmiddlewaretoken": token}
    return world.send(
        "POST", "/device", form=form, headers=[("cookie", cookies), ("origin", "http://testserver")], accept="text/html"
    )


@attack(42)
def codes_guessed(world: World) -> None:
    device = start_device(make_service(world.cast))
    guesses = [decide(world, "member", f"BBBB-BBB{letter}") for letter in "BCDFGHJKLM"]
    assert {answer.status_code for answer in guesses} == {404}
    with world.watched():
        answer = decide(world, "member", device.user_code)
        assert answer.status_code == 429
        assert 0 < int(answer.headers["Retry-After"]) <= 900
        assert device.row.decision == ""


@attack(42, ("other_owner", "stranger"))
def somebody_of_another_organization_approves(world: World, who: str) -> None:
    device = start_device(make_service(world.cast))
    with world.watched("oauth_ext.UserCodeMiss"):
        answer = decide(world, who, device.user_code)
        assert (answer.status_code, device.row.decision) == (404, "")
        unknown = decide(world, who, "BBBB-BBBB")
        assert unknown.status_code == 404
        assert device.service.client.name not in answer.text


@attack(42, {"approve twice": ("approve", "approve"), "approve after deny": ("deny", "approve")})
def a_decision_once_more(world: World, actions: tuple[str, str]) -> None:
    first, second = actions
    device = start_device(make_service(world.cast))
    assert decide(world, "member", device.user_code, first).status_code == 200
    decided = device.row.decision
    with world.watched():
        assert decide(world, "member", device.user_code, second).status_code == 200
        assert device.row.decision == decided


@attack(42)
def a_link_with_the_code(world: World) -> None:
    device = start_device(make_service(world.cast))
    with world.watched():
        for method in ("GET", "HEAD"):
            answer = world.send(method, f"/device?user_code={device.user_code}", who="member", accept="text/html")
            assert answer.status_code == 200
        assert device.row.decision == ""


@attack(43)
def fifty_polls_at_once(world: World) -> None:
    device = start_device(make_service(world.cast))
    device.decide(world.cast.client("member"))
    form = {"grant_type": GRANT_TYPE, "device_code": device.device_code, **credentials(device.service)}
    world.settings.REFUSED_TOKENS_OF_CLIENT = Rule("attack 43", limit=1_000, window_s=60)
    answers = world.wire.at_once(*[world.request("POST", "/oauth/token", form=form)] * 50)
    (given,) = [answer.json() for answer in answers if answer.status_code == 200]
    for answer in answers:
        if answer.status_code != 200:
            refused(answer, 400, "invalid_grant")
    with world.watched():
        assert AccessToken.objects.filter(application=device.service.client).count() == 1
        assert TokenFamily.objects.count() == 1
        assert given["refresh_token"]
