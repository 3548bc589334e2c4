"""Every OAuth endpoint, driven by oauth4webapi: the strictest client library there is. Nothing is left out."""

from __future__ import annotations

import pytest

from tests.clients import programs
from tests.clients.sign_in_gateway import SignInGateway

pytest_plugins = ("tests.vendors.fixtures", "tests.e2e.fixtures", "tests.clients.fixtures")

STEPS = (
    "challenge without a token",
    "challenge to a wrong token",
    "discovery of the resource and its server",
    "device flow, pending and approved",
    "dynamic registration",
    "a redirect address that nobody may register",
    "authorization code with PKCE and iss",
    "the access token is a JWT of RFC 9068",
    "refresh with rotation",
    "two refreshes of one token at once",
    "a refresh token of another client",
    "a wrong verifier",
    "a code that is used twice takes its tokens back",
    "a person who cancels",
    "errors of an authorization request come back with state and iss",
    "client credentials by Basic",
    "client credentials in the body",
    "client credentials that are not",
    "device flow, tokens once",
    "device flow, refreshed",
    "device flow, denied",
    "device flow, too fast",
    "device flow, not for this client",
    "revocation of an access token",
    "revocation of a refresh token",
)


@pytest.fixture(scope="module")
def outcome(sign_in_gateway: SignInGateway, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str] | None:
    """The result of each step; None on a machine without Node.js."""
    node = programs.node()
    if node is None:
        return None
    person = sign_in_gateway.new_person()
    service_client = {
        "SERVICE_CLIENT_ID": person.service_client.client_id,
        "SERVICE_CLIENT_SECRET": person.service_client.client_secret,
        "SERVICE_SUBJECT": person.service_client.subject,
    }
    environment = programs.environment(tmp_path_factory.mktemp("oauth4webapi"), person.email, service_client)
    command = (node, str(programs.NODE_PROGRAMS / "oauth4webapi.mjs"), sign_in_gateway.mcp_url)
    return programs.run(command, environment).report()


def test_no_step_is_left_out(outcome: dict[str, str] | None) -> None:
    if outcome is None:
        programs.skip_without_node()
    assert tuple(outcome) == STEPS


@pytest.mark.parametrize("step", STEPS)
def test_step(outcome: dict[str, str] | None, step: str) -> None:
    if outcome is None:
        programs.skip_without_node()
    assert outcome[step] == "ok", outcome[step]
