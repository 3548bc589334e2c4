"""The web server that takes access away refuses the very next call, another one does so within seconds.

Both servers have answered the caller a moment before, so both hold it in memory.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import httpx
import pytest

from tests.clients.oauth_client import OAuthClient
from tests.clients.sign_in_gateway import Person, SignInGateway
from tests.e2e import agent
from tests.vendors.processes import free_port

pytest_plugins = ("tests.vendors.fixtures", "tests.e2e.fixtures", "tests.clients.fixtures")

ELSEWHERE_S = 5.0  # a sixth of what it takes without a bump


@dataclass(frozen=True)
class Servers:
    """A client of the web server where things are changed, and one of another on the same data."""

    here: httpx.Client
    elsewhere: httpx.Client

    def accept(self, *bearers: str) -> None:
        """Both let these in."""
        for http in (self.here, self.elsewhere):
            for bearer in bearers:
                agent.result(agent.call(http, bearer, "acme_whoami"))

    def refuse(self, *bearers: str) -> None:
        """None of these is let in: here from now on, elsewhere from at most ELSEWHERE_S after now."""
        for bearer in bearers:
            assert_refused(agent.call(self.here, bearer, "acme_whoami"))
        deadline = time.monotonic() + ELSEWHERE_S
        for bearer in bearers:
            while (answer := agent.call(self.elsewhere, bearer, "acme_whoami")).status_code == 200:
                assert time.monotonic() < deadline, "the other server still lets it in"
            assert_refused(answer)

    def refuse_refresh(self, client: OAuthClient, tokens: Mapping[str, str]) -> None:
        """The refresh token is worth nothing elsewhere either."""
        wish = {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"], "client_id": client.client_id}
        answer = self.elsewhere.post("/oauth/token", data=wish)
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")


def assert_refused(answer: httpx.Response) -> None:
    """The client is told that its token is worth nothing."""
    assert answer.status_code == 401, answer.text
    assert 'error="invalid_token"' in answer.headers["WWW-Authenticate"]


@pytest.fixture(scope="module")
def servers(sign_in_gateway: SignInGateway) -> Iterator[Servers]:
    """The gateway's web server, and a second one beside it."""
    with (
        sign_in_gateway.deployment.web(port=free_port()) as second,
        sign_in_gateway.web.client() as here,
        second.client() as elsewhere,
    ):
        yield Servers(here, elsewhere)


@pytest.fixture
def client(servers: Servers) -> OAuthClient:
    """A client that has registered itself."""
    return OAuthClient(servers.here)


def test_a_revoked_access_token(
    sign_in_gateway: SignInGateway, servers: Servers, client: OAuthClient, person: Person
) -> None:
    with sign_in_gateway.browser(person) as browser:
        lost, kept = client.sign_in(browser), client.sign_in(browser)
    servers.accept(lost["access_token"], kept["access_token"])
    client.revoke(lost["access_token"])
    servers.refuse(lost["access_token"])
    servers.accept(kept["access_token"], person.service_client.agent_key)


def test_a_revoked_refresh_token_takes_its_access_tokens_along(
    sign_in_gateway: SignInGateway, servers: Servers, client: OAuthClient, person: Person
) -> None:
    with sign_in_gateway.browser(person) as browser:
        first = client.sign_in(browser)
    second = client.token(grant_type="refresh_token", refresh_token=first["refresh_token"])
    servers.accept(second["access_token"])
    client.revoke(second["refresh_token"])
    servers.refuse(first["access_token"], second["access_token"])
    servers.refuse_refresh(client, second)


def test_a_member_who_was_removed(
    sign_in_gateway: SignInGateway, servers: Servers, client: OAuthClient, person: Person
) -> None:
    org_id, email = person.service_client.org_id, f"member-of-{person.email}"
    user_id = sign_in_gateway.operator.run("add_member", org_id=org_id, email=email, vendors=["acme"])
    with sign_in_gateway.browser(email) as browser:
        tokens = client.sign_in(browser)
    with sign_in_gateway.browser(person) as browser:
        owners = client.sign_in(browser)
        servers.accept(tokens["access_token"], owners["access_token"])
        answer = browser.http.delete(f"{browser.origin}/api/orgs/{org_id}/members/{user_id}")
    assert answer.status_code == 204, answer.text
    servers.refuse(tokens["access_token"])
    servers.accept(owners["access_token"])
    servers.refuse_refresh(client, tokens)


def test_a_service_client_deleted_on_its_page(sign_in_gateway: SignInGateway, servers: Servers, person: Person) -> None:
    service_client, bystander = person.service_client, sign_in_gateway.new_person().service_client
    token = agent.access_token(servers.here, service_client)
    servers.accept(service_client.agent_key, token, bystander.agent_key)
    with sign_in_gateway.browser(person) as browser:
        page = browser.open(f"/orgs/{service_client.org_id}/agents/{service_client.client_id}/delete")
        browser.press(page, "Delete agent", typed_name=person.bot)
    servers.refuse(service_client.agent_key, token)
    servers.accept(bystander.agent_key)
    form = {
        "grant_type": "client_credentials",
        "client_id": service_client.client_id,
        "client_secret": service_client.client_secret,
    }
    for http in (servers.here, servers.elsewhere):
        answer = http.post("/oauth/token", data=form)
        assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")


def test_an_agent_key_rotated_on_its_page(sign_in_gateway: SignInGateway, servers: Servers, person: Person) -> None:
    service_client = person.service_client
    token = agent.access_token(servers.here, service_client)
    servers.accept(service_client.agent_key, token)
    with sign_in_gateway.browser(person) as browser:
        page = browser.open(f"/orgs/{service_client.org_id}/agents/{service_client.client_id}/agent-key")
        answer = browser.press(page, "Rotate key", typed_name=person.bot)
    assert answer.status_code == 201
    servers.refuse(service_client.agent_key)
    servers.accept(token)
