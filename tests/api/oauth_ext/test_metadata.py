"""The well-known documents."""

from __future__ import annotations

import pytest
from django.test import Client as Browser
from pytest_django.fixtures import Settings

PATHS = [
    "/.well-known/oauth-authorization-server",
    "/.well-known/oauth-protected-resource",
    "/.well-known/oauth-protected-resource/v1/mcp",
    "/.well-known/oauth-protected-resource/v1/acme/mcp",
    "/.well-known/jwks.json",
]


@pytest.mark.parametrize("path", PATHS)
def test_every_document_is_open_and_cacheable(vendor: str, path: str) -> None:
    answer = Browser().get(path, headers={"Origin": "https://app.example"})
    assert answer.status_code == 200
    assert answer["Content-Type"] == "application/json"
    assert answer["Cache-Control"] == "public, max-age=300"
    assert answer["Access-Control-Allow-Origin"] == "*"
    assert "Access-Control-Allow-Credentials" not in answer
    assert not answer.cookies
    assert Browser().head(path).status_code == 200
    preflight = Browser().options(path)
    assert (preflight.status_code, preflight["Access-Control-Allow-Origin"]) == (204, "*")
    assert "MCP-Protocol-Version" in preflight["Access-Control-Allow-Headers"]


@pytest.mark.parametrize("path", [*PATHS, "/.well-known/other"])
def test_other_methods(vendor: str, path: str) -> None:
    answer = Browser().post(path)
    assert (answer.status_code, answer["Allow"]) == (405, "GET, HEAD, OPTIONS")
    assert answer.json()["error"] == "method_not_allowed"


def test_the_authorization_server(db: None) -> None:
    assert Browser().get("/.well-known/oauth-authorization-server").json() == {
        "issuer": "http://testserver",
        "authorization_endpoint": "http://testserver/oauth/authorize",
        "token_endpoint": "http://testserver/oauth/token",
        "registration_endpoint": "http://testserver/oauth/register",
        "revocation_endpoint": "http://testserver/oauth/revoke",
        "device_authorization_endpoint": "http://testserver/oauth/device_authorization",
        "jwks_uri": "http://testserver/.well-known/jwks.json",
        "scopes_supported": ["mcp", "mcp:all"],
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": [
            "authorization_code",
            "refresh_token",
            "client_credentials",
            "urn:ietf:params:oauth:grant-type:device_code",
            "urn:ietf:params:oauth:grant-type:jwt-bearer",
            "urn:ietf:params:oauth:grant-type:token-exchange",
        ],
        "authorization_grant_profiles_supported": ["urn:ietf:params:oauth:grant-profile:id-jag"],
        "token_endpoint_auth_methods_supported": ["none", "client_secret_basic", "client_secret_post"],
        "revocation_endpoint_auth_methods_supported": ["none", "client_secret_basic", "client_secret_post"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
        "client_id_metadata_document_supported": False,
        "service_documentation": "http://testserver/",
    }


@pytest.mark.parametrize("enabled", [True, False])
def test_metadata_documents_are_advertised_where_they_are_read(db: None, settings: Settings, enabled: bool) -> None:
    settings.CIMD_ENABLED = enabled
    document = Browser().get("/.well-known/oauth-authorization-server").json()
    assert document["client_id_metadata_document_supported"] is enabled


def test_every_advertised_endpoint_is_served(db: None) -> None:
    document = Browser().get("/.well-known/oauth-authorization-server").json()
    addresses = [value for name, value in document.items() if name.endswith(("_endpoint", "_uri"))]
    assert len(addresses) == 6
    for address in addresses:
        assert Browser().options(address.removeprefix("http://testserver")).status_code in {204, 405}, address


def test_the_unified_resource_is_the_same_at_the_root_and_at_its_path(db: None) -> None:
    root = Browser().get("/.well-known/oauth-protected-resource").json()
    assert root == Browser().get("/.well-known/oauth-protected-resource/v1/mcp").json()
    assert root["resource"] == "http://testserver/v1/mcp"
    assert root["authorization_servers"] == ["http://testserver"]
    assert root["scopes_supported"] == ["mcp:all"]
    assert root["bearer_methods_supported"] == ["header"]


def test_a_vendor_resource(vendor: str) -> None:
    document = Browser().get("/.well-known/oauth-protected-resource/v1/acme/mcp").json()
    assert document["resource"] == "http://testserver/v1/acme/mcp"
    assert document["scopes_supported"] == ["mcp:acme"]


def test_the_host_header_is_not_believed(db: None, settings: Settings) -> None:
    settings.ALLOWED_HOSTS = ["testserver", "evil.test"]
    for path in PATHS[:3]:
        answer = Browser().get(path, headers={"Host": "evil.test", "X-Forwarded-Host": "evil.test"})
        assert answer.status_code == 200
        assert b"evil" not in answer.content


def test_the_jwks_holds_public_halves_only(db: None) -> None:
    document = Browser().get("/.well-known/jwks.json").json()
    assert [set(key) for key in document["keys"]] == [{"kty", "crv", "x", "y", "kid", "alg", "use"}]


@pytest.mark.parametrize(
    "path",
    [
        "/.well-known/openid-configuration",
        "/.well-known/oauth-authorization-server/v1/mcp",
        "/.well-known/oauth-authorization-server/",
        "/.well-known/oauth-protected-resource/v1/nope/mcp",
        "/.well-known/oauth-protected-resource/v1/ACME/mcp",
        "/.well-known/oauth-protected-resource/v1/a%00b/mcp",
        "/.well-known/oauth-protected-resource/v1/mcp/",
        "/.well-known/oauth-protected-resource/v1/acme/cli",
        "/.well-known/security.txt",
    ],
)
def test_every_other_path_is_a_json_404(vendor: str, path: str) -> None:
    answer = Browser().get(path, headers={"Accept": "text/html"})
    assert answer.status_code == 404
    assert answer["Content-Type"] == "application/json"
    assert answer["Access-Control-Allow-Origin"] == "*"
    assert set(answer.json()) == {"error", "message", "requestId"}
