"""Registrations as well-known clients send them: each is taken, and gets a token that works.

The bodies are those of the programs; their redirect addresses and oddities are what registration has to live with.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.clients.oauth_client import OAuthClient
from tests.clients.sign_in_gateway import Person, SignInGateway
from tests.e2e import agent

pytest_plugins = ("tests.vendors.fixtures", "tests.e2e.fixtures", "tests.clients.fixtures")
pytestmark = pytest.mark.one_back_end

DEVICE = "urn:ietf:params:oauth:grant-type:device_code"


@dataclass(frozen=True)
class Registrant:
    """A client: its registration, the redirect address it then uses, and its other authorization parameters."""

    body: dict[str, Any]
    redirect_uri: str
    asks: dict[str, str] = field(default_factory=dict)


REGISTRANTS = {
    "VS Code": Registrant(
        {
            "client_name": "Visual Studio Code",
            "client_uri": "https://code.visualstudio.com",
            "grant_types": ["authorization_code", "refresh_token", DEVICE],
            "response_types": ["code"],
            "redirect_uris": [
                "https://insiders.vscode.dev/redirect",
                "https://vscode.dev/redirect",
                "http://127.0.0.1/",
                "http://127.0.0.1:33418/",
            ],
            "scope": "mcp:all",
            "token_endpoint_auth_method": "none",
            "application_type": "native",
        },
        "http://127.0.0.1:51234/",
        {"scope": "mcp:all"},
    ),
    "Cursor": Registrant(
        {
            "client_name": "Cursor",
            "redirect_uris": [
                "cursor://anysphere.cursor-mcp/oauth/callback",
                "http://localhost:8787/callback",
                "http://127.0.0.1:8787/callback",
            ],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
            "application_type": "web",
        },
        "cursor://anysphere.cursor-mcp/oauth/callback",
    ),
    "claude.ai": Registrant(
        {
            "client_name": "Claude",
            "redirect_uris": ["https://claude.ai/api/mcp/auth_callback"],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "client_secret_post",
            "scope": "mcp mcp:all",
        },
        "https://claude.ai/api/mcp/auth_callback",
        {"scope": "mcp mcp:all"},
    ),
    "Python SDK": Registrant(
        {
            "redirect_uris": ["http://localhost:3030/callback"],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "scope": "mcp:all",
            "client_name": "Simple Auth Client",
            "application_type": "native",
        },
        "http://localhost:3030/callback",
        {"scope": "mcp:all"},
    ),
    "ChatGPT": Registrant(
        {
            "client_name": "ChatGPT",
            "redirect_uris": ["https://chatgpt.com/connector/oauth/AbC123"],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
        },
        "https://chatgpt.com/connector/oauth/AbC123",
    ),
}


@pytest.mark.parametrize("name", REGISTRANTS)
def test_a_registration_body_of_the_wild(sign_in_gateway: SignInGateway, person: Person, name: str) -> None:
    registrant = REGISTRANTS[name]
    with sign_in_gateway.web.client() as http, sign_in_gateway.browser(person) as browser:
        client = OAuthClient(http, registrant.body)
        answer = client.registered
        assert client.registration.headers["Cache-Control"] == "no-store"
        assert answer["token_endpoint_auth_method"] == "none"
        assert answer["grant_types"] == ["authorization_code", "refresh_token"]
        assert answer["redirect_uris"] == registrant.body["redirect_uris"]
        assert "client_secret" not in answer
        assert None not in answer.values()
        tokens = client.sign_in(browser, redirect_uri=registrant.redirect_uri, **registrant.asks)
        seen = agent.result(agent.call(http, tokens["access_token"], "acme_whoami"))
        assert seen["structuredContent"]["key_fingerprint"] == person.fingerprint
        fresh = client.token(grant_type="refresh_token", refresh_token=tokens["refresh_token"])
        agent.result(agent.rpc(http, fresh["access_token"], "tools/list"))


@pytest.mark.parametrize(
    "redirect_uri", ["javascript:alert(1)", "http://evil.example/cb", "https://app.example/cb#part", "data:text/html,x"]
)
def test_a_redirect_address_that_is_not_taken(sign_in_gateway: SignInGateway, redirect_uri: str) -> None:
    with sign_in_gateway.web.client() as http:
        answer = http.post("/oauth/register", json={"client_name": "Odd", "redirect_uris": [redirect_uri]})
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_redirect_uri")
