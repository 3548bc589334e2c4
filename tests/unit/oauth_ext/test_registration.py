"""Registration metadata: accepted, replaced and refused members."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from oauth_ext import registration
from oauth_ext.registration import BadMetadata

CALLBACK = "https://app.example/cb"


def existing(wanted: Sequence[str]) -> list[str]:
    return [scope for scope in wanted if scope in {"mcp", "mcp:all", "mcp:acme"}]


def read(**document: object) -> registration.Registration:
    return registration.read({"redirect_uris": [CALLBACK], **document}, existing)


def test_what_is_not_said_is_filled_in() -> None:
    assert read().metadata() == {
        "redirect_uris": [CALLBACK],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "application_type": "native",
        "scope": "mcp:all",
    }


@pytest.mark.parametrize(
    "wish",
    [
        {"grant_types": ["client_credentials"]},
        {"grant_types": ["urn:ietf:params:oauth:grant-type:device_code"]},
        {"grant_types": "nonsense"},
        {"token_endpoint_auth_method": "client_secret_basic", "client_secret": "mine"},
        {"token_endpoint_auth_method": "private_key_jwt", "jwks_uri": "https://a"},
        {"client_id": "svc_mine", "registration_access_token": "x"},
        {"response_types": ["token"]},
        {"client_name": None, "scope": None, "logo_uri": "javascript:alert(1)"},
    ],
)
def test_no_wish_is_refused_and_none_is_granted(wish: dict[str, object]) -> None:
    assert read(**wish) == read()


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ("mcp:acme mcp", "mcp:acme mcp"),
        ("openid mcp:acme offline_access", "mcp:acme"),
        ("openid", "mcp:all"),
        ("", "mcp:all"),
    ],
)
def test_scopes(asked: str, given: str) -> None:
    assert read(scope=asked).scope == given


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ("  Claude  ", "Claude"),
        ("<b>Bold</b>", "<b>Bold</b>"),
        ("x" * 101, "x" * 100),
        ("evil\u202eeman", ""),
        ("two\nlines", ""),
        ("", ""),
    ],
)
def test_names(asked: str, given: str) -> None:
    assert read(client_name=asked).name == given


def test_application_types() -> None:
    assert read(application_type="web").application_type == "web"
    assert read(application_type="toaster").application_type == "native"


def test_the_same_address_counts_once() -> None:
    other = "http://127.0.0.1/"
    assert read(redirect_uris=[CALLBACK, other, CALLBACK]).redirect_uris == (CALLBACK, other)


@pytest.mark.parametrize(
    "uris",
    [
        None,
        [],
        {},
        "https://app.example/cb",
        [CALLBACK, "javascript:alert(1)"],
        [CALLBACK, 1],
        [f"{CALLBACK}/{n}" for n in range(11)],
    ],
)
def test_redirect_addresses_are_needed_and_each_must_do(uris: object) -> None:
    with pytest.raises(BadMetadata) as refusal:
        read(redirect_uris=uris)
    assert refusal.value.error == "invalid_redirect_uri"


@pytest.mark.parametrize("document", [None, [], "x", 1, [{"redirect_uris": [CALLBACK]}]])
def test_only_an_object_will_do(document: object) -> None:
    with pytest.raises(BadMetadata) as refusal:
        registration.read(document, existing)
    assert refusal.value.error == "invalid_client_metadata"


@pytest.mark.parametrize("member", ["client_name", "scope", "application_type"])
def test_mistyped_members(member: str) -> None:
    with pytest.raises(BadMetadata, match=member) as refusal:
        read(**{member: ["a"]})
    assert refusal.value.error == "invalid_client_metadata"
