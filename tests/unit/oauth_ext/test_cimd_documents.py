"""Clients known by the address of their document."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from oauth_ext import cimd_documents
from oauth_ext.registration import BadMetadata

ADDRESS = "https://app.example/oauth/client.json"


def existing(wanted: Sequence[str]) -> list[str]:
    return list(wanted)


def document(**changes: object) -> dict[str, object]:
    return {"client_id": ADDRESS, "client_name": "App", "redirect_uris": ["https://app.example/cb"], **changes}


@pytest.mark.parametrize("address", [ADDRESS, "https://a.example:8443/x", "https://claude.ai/oauth/mcp-client?v=1"])
def test_addresses_of_documents(address: str) -> None:
    assert cimd_documents.is_document_address(address)


@pytest.mark.parametrize(
    "address",
    [
        "",
        "mcpc_abc",
        "svc_abc",
        "http://app.example/client.json",
        "https://app.example",
        "https://app.example/",
        "https://app.example/a#f",
        "https://user@app.example/a",
        "https://app.example/../a",
        "https://app.example/a/./b",
        "https://APP.example/a",
        "https://app.example/a b",
        "https://[::1]/a",
        "https://app.example/" + "a" * 255,
        "file:///etc/passwd",
    ],
)
def test_other_client_ids(address: str) -> None:
    assert not cimd_documents.is_document_address(address)


def test_the_document_says_what_is_registered() -> None:
    wanted = cimd_documents.read(ADDRESS, document(grant_types=["authorization_code", "x"]), existing)
    assert (wanted.name, wanted.redirect_uris) == ("App", ("https://app.example/cb",))
    assert cimd_documents.read(ADDRESS, document(token_endpoint_auth_method="none"), existing) == wanted


@pytest.mark.parametrize(
    "bad",
    [
        [],
        {},
        document(client_id="https://app.example/oauth/other.json"),
        document(client_id=ADDRESS + "/"),
        document(client_secret="x"),
        document(client_secret_expires_at=0),
        document(token_endpoint_auth_method="client_secret_basic"),
        document(token_endpoint_auth_method="private_key_jwt"),
        document(redirect_uris=[]),
        document(redirect_uris=["http://evil.example/"]),
        document(client_name=7),
    ],
)
def test_documents_that_will_not_do(bad: object) -> None:
    with pytest.raises(BadMetadata) as refusal:
        cimd_documents.read(ADDRESS, bad, existing)
    assert refusal.value.reason


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("", 86_400),
        ("max-age=3600", 3_600),
        ("public, max-age=1", 300),
        ("max-age=999999999", 86_400),
        ("no-store", 300),
        ("no-cache, max-age=3600", 300),
        ("x-max-age=5", 86_400),
        ("max-age=abc", 86_400),
    ],
)
def test_lifetimes(header: str, seconds: int) -> None:
    assert cimd_documents.lifetime_s(header) == seconds
