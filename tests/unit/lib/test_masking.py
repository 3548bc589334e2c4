"""The net below "log no secrets": names and shapes are blanked at any depth, and ordinary lines stay readable."""

from __future__ import annotations

import time
from typing import Any

import pytest
from django.test import RequestFactory
from structlog.processors import JSONRenderer

from gateway.lib.masking import MASK, mask_event, mask_text

SECRET = "hunter2hunter2"
AGENT_KEY = "cak_0123456789ab_" + "Zz9" * 14
TOKEN = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl-_"


def masked(**event: Any) -> dict[str, Any]:
    return dict(mask_event(None, "info", {"event": "something happened", **event}))


@pytest.mark.parametrize(
    "name",
    [
        "authorization",
        "Proxy-Authorization",
        "cookie",
        "Set-Cookie",
        "client_secret",
        "secrets",
        "password",
        "DB_PASSWD",
        "access_token",
        "tokens",
        "apiKey",
        "x-api-key",
        "agent_key",
        "credential",
        "credentials",
        "private_key",
        "data_key",
        "wrapped_key",
        "user_code",
        "code_verifier",
    ],
)
def test_values_under_secret_names_are_blanked(name: str) -> None:
    assert masked(**{name: SECRET})[name] == MASK
    assert masked(**{name: {"deep": [SECRET]}})[name] == MASK
    assert masked(headers={name: SECRET})["headers"] == {name: MASK}


@pytest.mark.parametrize(
    "name", ["credential_id", "client_id", "key_id", "token_type", "vendor", "status_code", "event"]
)
def test_other_names_keep_their_values(name: str) -> None:
    assert masked(**{name: "plain"})[name] == "plain"


def test_whether_there_was_a_secret_may_be_said() -> None:
    assert masked(token=None, password=False) == {"event": "something happened", "token": None, "password": False}


def test_secrets_are_found_at_any_depth() -> None:
    event = masked(request={"items": [{"headers": ({"Authorization": SECRET}, AGENT_KEY)}]}, seen={AGENT_KEY})
    assert SECRET not in repr(event)
    assert AGENT_KEY not in repr(event)


def test_endless_nesting_ends_in_the_mask() -> None:
    nested: dict[str, Any] = {}
    nested["again"] = nested
    assert MASK in repr(masked(nested=nested))


def test_bytes_are_never_shown() -> None:
    assert masked(body=b"\x01\x02", view=memoryview(b"abc")) == {
        "event": "something happened",
        "body": MASK,
        "view": MASK,
    }


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        (f"key {AGENT_KEY} was refused", AGENT_KEY),
        (f"token {TOKEN}", TOKEN),
        *((f"Invalid API key: {key}", key) for key in ("sk_live_51Abc", "rk_test_51Abc", "whsec_Zz9+/=")),
        ("Vault refuses hvs.CAESIJtest-token_9", "hvs.CAESIJtest-token_9"),
        (f"Authorization: Bearer {SECRET}", SECRET),
        (f"authorization: basic {SECRET}==", SECRET),
        (f"GET /oauth/callback?code={SECRET}&state=s", SECRET),
        (f"POST /x?access_token={SECRET}", SECRET),
        (f"client_secret={SECRET}&grant_type=client_credentials", SECRET),
        (f'{{"apiKey": "{SECRET}", "platform": "eu"}}', SECRET),
        (f"{{'password': '{SECRET} with blanks'}}", SECRET),
        (f'body was "{{\\"token\\": \\"{SECRET}\\"}}"', SECRET),
        (f"postgres://gateway:{SECRET}@db.internal/gateway", SECRET),
        (f"redis://:{SECRET}@cache:6379/0", SECRET),
        (f"redis://:p@{SECRET}@cache:6379/0", SECRET),
        (f"GET /invite/{SECRET} 200", SECRET),
        (f"POST /mail/unsubscribe/invitation:{SECRET} 200", SECRET),
        (f"Cookie: session={SECRET}; other=1", SECRET),
    ],
)
def test_secret_shapes_in_text_are_blanked(text: str, hidden: str) -> None:
    assert hidden not in mask_text(text)
    assert hidden not in repr(masked(detail=text))
    assert hidden not in repr(masked(event=text))
    assert MASK in mask_text(text)


def test_objects_are_masked_as_they_would_be_written() -> None:
    """Django logs the request itself, which writes its path with the query string."""
    request = RequestFactory().post(f"/oauth/token?client_secret={SECRET}&next=/x")
    for logged in (masked(request=request), masked(extra={"deep": [request]})):
        assert SECRET not in JSONRenderer()(None, "", logged)
        assert "/oauth/token?client_secret=[hidden]&next=/x" in JSONRenderer()(None, "", logged)


def test_numbers_stay_numbers() -> None:
    numbers = {"status": 401, "seconds": 0.5, "done": True, "nothing": None}
    assert masked(**numbers).items() >= numbers.items()


@pytest.mark.parametrize(
    "text",
    [
        "invalid token: expired 3 s ago",
        "GET /v1/acme/cli 200 in 12 ms",
        "https://gateway.example/orgs/1?next=/x",
        "no credentials for vendor acme",
        "connected to 127.0.0.1:5432",
        "mail to owner@example.com",
    ],
)
def test_ordinary_lines_stay_as_they_are(text: str) -> None:
    assert mask_text(text) == text


@pytest.mark.parametrize(
    "piece", ["a", "a-", "token ", 'token"', "token    ", "http://", "a:b@", "://", "eyJ", "cak_", "bearer "]
)
def test_no_text_costs_more_than_its_length(piece: str) -> None:
    started = time.perf_counter()
    mask_text(piece * (100_000 // len(piece)))
    assert time.perf_counter() - started < 10  # a guard against hanging, not a measurement
