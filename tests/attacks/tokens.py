"""Rows 32 to 36: refresh, revocation, and the other ways to a token."""

from __future__ import annotations

import base64
from datetime import timedelta
from typing import Any

import httpx

from audit.models import AdminAuditEntry
from gateway.lib import clock
from oauth_ext.models import Client, RefreshToken, TokenFamily
from tests.api.oauth_ext.flow import Flow, make_flow, make_public_client
from tests.attacks.authorization import GIVEN
from tests.attacks.refusals import refused
from tests.attacks.table import attack
from tests.attacks.world import ADMIN_ROW, World

TOKEN = "/oauth/token"


def refresh(world: World, flow: Flow, token: str, **changes: str) -> httpx.Response:
    form = {"grant_type": "refresh_token", "refresh_token": token, "client_id": flow.client.client_id}
    return world.post(TOKEN, {**form, **changes})


def after_the_grace(flow: Flow) -> tuple[str, list[str]]:
    first = flow.tokens()
    second = flow.refresh(first["refresh_token"]).json()
    used_at = clock.now() - timedelta(seconds=91)
    RefreshToken.objects.filter(revoked__isnull=False).update(revoked=used_at)
    return first["refresh_token"], [first["access_token"], second["access_token"]]


def two_generations_later(flow: Flow) -> tuple[str, list[str]]:
    first = flow.tokens()
    second = flow.refresh(first["refresh_token"]).json()
    third = flow.refresh(second["refresh_token"]).json()
    return first["refresh_token"], [pair["access_token"] for pair in (first, second, third)]


@attack(32, {"after the grace period": after_the_grace, "two generations later": two_generations_later})
def a_refresh_token_used_again(world: World, use: Any) -> None:
    flow = make_flow(world.cast)
    token, given = use(flow)
    assert [world.rpc(each, "ping").status_code for each in given] == [200] * len(given)
    with world.watched(*GIVEN, ADMIN_ROW):
        refused(refresh(world, flow, token), 400, "invalid_grant")
        assert not TokenFamily.objects.exists()
        assert AdminAuditEntry.objects.filter(event_type="oauth.refresh_reuse_detected").count() == 1
    with world.watched():
        for each in given:
            refused(world.rpc(each, "ping"), 401, "invalid_token")


@attack(32)
def a_refresh_token_of_another_client(world: World) -> None:
    flow, stranger = make_flow(world.cast), make_public_client()
    first = flow.tokens()
    with world.watched():
        refused(refresh(world, flow, first["refresh_token"], client_id=stranger.client_id), 400, "invalid_grant")
        assert world.rpc(first["access_token"], "ping").status_code == 200
    assert refresh(world, flow, first["refresh_token"]).status_code == 200


@attack(33)
def a_refresh_token_used_fifty_times_at_once(world: World) -> None:
    flow = make_flow(world.cast)
    first = flow.tokens()["refresh_token"]
    form = {"grant_type": "refresh_token", "refresh_token": first, "client_id": flow.client.client_id}
    answers = world.wire.at_once(*[world.request("POST", TOKEN, form=form)] * 50)
    given = [answer.json() for answer in answers if answer.status_code == 200]
    assert len(given) == 6, "one rotation, and five children of the grace period"
    for answer in answers:
        if answer.status_code != 200:
            refused(answer, 400, "invalid_grant")
    assert [world.rpc(pair["access_token"], "ping").status_code for pair in given] == [200] * 6
    assert world.post("/oauth/revoke", {"token": given[3]["refresh_token"]}).status_code == 200
    with world.watched():
        for pair in given:
            refused(world.rpc(pair["access_token"], "ping"), 401, "invalid_token")


def is_silent(answer: httpx.Response) -> bool:
    return (answer.status_code, answer.content) == (200, b"")


@attack(34)
def a_token_of_nobody_to_revoke(world: World) -> None:
    with world.watched():
        for token in ("x", "cak_abcdefghijkl_secret", "' OR 1=1--", "x" * 8_000):
            assert is_silent(world.post("/oauth/revoke", {"token": token}))


@attack(34)
def a_token_of_another_client_to_revoke(world: World) -> None:
    flow = make_flow(world.cast)
    pair = flow.tokens()
    stranger = make_public_client()
    with world.watched():
        for which in ("access_token", "refresh_token"):
            form = {"token": pair[which], "client_id": stranger.client_id}
            assert is_silent(world.post("/oauth/revoke", form))
        assert world.rpc(pair["access_token"], "ping").status_code == 200


@attack(34)
def no_token_to_revoke(world: World) -> None:
    with world.watched():
        refused(world.post("/oauth/revoke", {}), 400, "invalid_request")
        refused(world.post("/oauth/revoke", {"token": ""}), 400, "invalid_request")


def secret_of(world: World, **changes: str) -> dict[str, str]:
    known = {"client_id": world.tenant.client.client_id, "client_secret": world.tenant.client_secret}
    return {"grant_type": "client_credentials", **known, **changes}


def expired(world: World) -> dict[str, str]:
    Client.objects.filter(pk=world.tenant.client.pk).update(expires_at=clock.now())
    return secret_of(world)


def without_a_secret(world: World) -> dict[str, str]:
    form = secret_of(world)
    del form["client_secret"]
    return form


@attack(
    35,
    {
        "wrong": lambda world: secret_of(world, client_secret="x" * 43),
        "of another client": lambda world: secret_of(world, client_secret=world.other.client_secret),
        "the stored hash": lambda world: secret_of(world, client_secret=world.tenant.client.client_secret),
        "expired": expired,
        "absent": without_a_secret,
        "empty": lambda world: secret_of(world, client_secret=""),
        "unknown client": lambda world: secret_of(world, client_id="svc_nobody"),
    },
)
def a_secret_that_is_none(world: World, form_of: Any) -> None:
    form = form_of(world)
    with world.watched():
        refused(world.post(TOKEN, form), 401, "invalid_client")


@attack(35)
def a_wrong_secret_by_http_basic(world: World) -> None:
    pair = base64.b64encode(f"{world.tenant.client.client_id}:wrong".encode()).decode()
    with world.watched():
        form = {"grant_type": "client_credentials"}
        answer = world.post(TOKEN, form, headers=[("authorization", f"Basic {pair}")])
        refused(answer, 401, "invalid_client")
        assert answer.headers["WWW-Authenticate"].startswith("Basic ")


@attack(35)
def a_public_client_asks_for_itself(world: World) -> None:
    client = make_public_client()
    with world.watched():
        form = {"grant_type": "client_credentials", "client_id": client.client_id}
        refused(world.post(TOKEN, form), 400, "unauthorized_client")


@attack(36, ("GET", "PUT", "DELETE", "PATCH"))
def another_method(world: World, method: str) -> None:
    with world.watched():
        answer = world.send(method, TOKEN)
        refused(answer, 405, "invalid_request")
        assert answer.headers["Allow"] == "POST, OPTIONS"


@attack(
    36,
    {
        "JSON": (None, "invalid_request"),
        "no grant": ({"grant_type": None}, "invalid_request"),
        "a password": ({"grant_type": "password", "username": "a", "password": "b"}, "unsupported_grant_type"),
        "implicit": ({"grant_type": "implicit"}, "unsupported_grant_type"),
        "a name twice": ({"scope": ["mcp", "mcp"]}, "invalid_request"),
        "a client twice": ({"client_id": ["a", "b"]}, "invalid_request"),
    },
)
def a_token_request_of_a_bad_form(world: World, asked: tuple[dict[str, Any] | None, str]) -> None:
    changes, error = asked
    with world.watched():
        if changes is None:
            answer = world.send("POST", TOKEN, body=secret_of(world))
        else:
            form = {name: value for name, value in {**secret_of(world), **changes}.items() if value is not None}
            answer = world.post(TOKEN, form)
        refused(answer, 400, error)


@attack(35)
def a_client_id_of_control_characters(world: World) -> None:
    with world.watched():
        refused(world.post(TOKEN, secret_of(world, client_id="svc_\x00")), 400, "invalid_request")
