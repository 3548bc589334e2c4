"""Registrations as well-known clients send them: each is taken, and gets a token that works.

The bodies are those of the programs; their redirect addresses and oddities are what registration has to live with.
"""

from __future__ import annotations

import pytest

from tests.clients.oauth_client import OAuthClient
from tests.clients.sign_in_gateway import Person, SignInGateway
from tests.e2e import agent
from tests.factories.registrations import BODIES

pytest_plugins = ("tests.vendors.fixtures", "tests.e2e.fixtures", "tests.clients.fixtures")
pytestmark = pytest.mark.one_back_end

# The redirect address that a client then uses, and its other authorization parameters.
ASKS: dict[str, tuple[str, dict[str, str]]] = {
    "VS Code": ("http://127.0.0.1:51234/", {"scope": "mcp:all"}),
    "Cursor": ("cursor://anysphere.cursor-mcp/oauth/callback", {}),
    "claude.ai": ("https://claude.ai/api/mcp/auth_callback", {"scope": "mcp mcp:all"}),
    "Python SDK": ("http://localhost:3030/callback", {"scope": "mcp:all"}),
    "ChatGPT": ("https://chatgpt.com/connector/oauth/AbC123", {}),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_registration_body_of_the_wild(sign_in_gateway: SignInGateway, person: Person, name: str) -> None:
    body, (redirect_uri, asks) = BODIES[name], ASKS[name]
    with sign_in_gateway.web.client() as http, sign_in_gateway.browser(person) as browser:
        client = OAuthClient(http, body)
        answer = client.registered
        assert client.registration.headers["Cache-Control"] == "no-store"
        assert answer["token_endpoint_auth_method"] == "none"
        assert answer["grant_types"] == ["authorization_code", "refresh_token"]
        assert answer["redirect_uris"] == body["redirect_uris"]
        assert "client_secret" not in answer
        assert None not in answer.values()
        tokens = client.sign_in(browser, redirect_uri=redirect_uri, **asks)
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
