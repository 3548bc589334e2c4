"""The discovery documents say what is on."""

from __future__ import annotations

from oauth_ext import features
from oauth_ext.server import GRANTS

BASE = "https://gateway.example"


def test_server_metadata() -> None:
    document = features.server_metadata(BASE, cimd_enabled=True)
    assert document["issuer"] == BASE
    assert document["token_endpoint"] == f"{BASE}/oauth/token"
    assert document["jwks_uri"] == f"{BASE}/.well-known/jwks.json"
    assert document["scopes_supported"] == ["mcp", "mcp:all"]
    assert document["grant_types_supported"] == list(features.GRANTS_ON)
    assert document["code_challenge_methods_supported"] == ["S256"]
    assert document["client_id_metadata_document_supported"] is True


def test_every_grant_that_is_on_is_built() -> None:
    assert set(features.GRANTS_ON) <= set(GRANTS)


def test_resource_metadata() -> None:
    unified, vendor = features.resource_metadata(BASE), features.resource_metadata(BASE, "acme", "Acme RMM")
    assert unified["resource"] == f"{BASE}/v1/mcp"
    assert unified["scopes_supported"] == ["mcp:all"]
    assert vendor["resource"] == f"{BASE}/v1/acme/mcp"
    assert vendor["scopes_supported"] == ["mcp:acme"]
    assert "Acme RMM" in vendor["resource_name"]
    for document in (unified, vendor):
        assert document["authorization_servers"] == [BASE]
        assert document["bearer_methods_supported"] == ["header"]
