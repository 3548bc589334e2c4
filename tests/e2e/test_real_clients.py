"""The programs that people connect with, as they are: each finds out by itself how to sign in, registers, lets a person
allow it in a browser, lists the tools and calls one. They are told the address of the endpoint and nothing else.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.clients import programs
from tests.clients.browser import decide_device
from tests.clients.programs import FASTMCP, MODULES, NODE_PROGRAMS, PYTHON_SDK_1
from tests.clients.sign_in_gateway import Person, SignInGateway
from tests.fakes.assertion_provider import AssertionProvider, running_provider
from tests.vendors.processes import free_port

pytest_plugins = ("tests.vendors.fixtures", "tests.e2e.fixtures", "tests.clients.fixtures")
pytestmark = pytest.mark.one_back_end

MCP_REMOTE = MODULES / "mcp-remote/dist/proxy.js"
# Its tokens go to a file: machines that run tests have no key ring.
INSPECTOR_VARIABLES = {"MCP_AUTO_OPEN_ENABLED": "true", "MCP_INSPECTOR_SECRET_STORE": "file"}
INSPECTOR = MODULES / "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
PYTHON_CLIENTS = {"sdk_2": sys.executable, "sdk_1": str(PYTHON_SDK_1), "fastmcp_client": str(FASTMCP)}


class Client:
    """A client program of `person`, with a home of its own."""

    def __init__(self, gateway: SignInGateway, person: Person, home: Path) -> None:
        self.gateway, self.person, self.home = gateway, person, home
        self._known = self._registered()

    def run(self, *command: str, more: Mapping[str, str] | None = None) -> programs.Finished:
        """The program from its start to its end."""
        return programs.run(command, programs.environment(self.home, self.person.email, more))

    def _registered(self) -> set[str]:
        select = "SELECT client_id FROM oauth_ext_client WHERE organization_id IS NULL"
        return {client_id for (client_id,) in self.gateway.deployment.database.select(select)}

    def registrations(self) -> int:
        """How many times programs have registered themselves since."""
        return len(self._registered() - self._known)

    def assert_used_tools(self, seen: Mapping[str, Any]) -> None:
        """It has seen the person's tools and called one of them with the person's credentials."""
        assert {"acme_whoami", "acme_create_ticket"} <= set(seen["tools"])
        assert seen["called"]["key_fingerprint"] == self.person.fingerprint


@pytest.fixture
def client(sign_in_gateway: SignInGateway, person: Person, tmp_path: Path) -> Client:
    """For one program."""
    return Client(sign_in_gateway, person, tmp_path)


@pytest.mark.parametrize("program", PYTHON_CLIENTS)
def test_a_python_client(client: Client, program: str) -> None:
    interpreter = PYTHON_CLIENTS[program]
    assert Path(interpreter).exists(), f"{interpreter} {programs.INSTALL_HINT}"
    # Python's webbrowser module waits for a browser that is not put into the background.
    more = {"BROWSER": f"{programs.STAND_INS / 'xdg-open'} %s &"}
    finished = client.run(interpreter, "-m", f"tests.clients.python.{program}", client.gateway.mcp_url, more=more)
    client.assert_used_tools(finished.report())
    assert client.registrations() == 1


@pytest.mark.parametrize("program", ["sdk_client", "second_client"])
def test_a_typescript_client(client: Client, program: str) -> None:
    node = programs.node()
    if node is None:
        programs.skip_without_node()
    seen = client.run(node, str(NODE_PROGRAMS / f"{program}.mjs"), client.gateway.mcp_url).report()
    client.assert_used_tools(seen)
    assert seen["scope"] == "mcp:all"
    assert client.registrations() == 1


def through_mcp_remote(node: str, client: Client) -> tuple[str, ...]:
    """The command of a program that speaks through mcp-remote, up to the gateway's address."""
    bridge = (sys.executable, "-m", "tests.clients.python.through_mcp_remote", node, str(MCP_REMOTE))
    return *bridge, client.gateway.mcp_url


def service_client(client: Client) -> tuple[str, str]:
    """The options that make mcp-remote the person's service client."""
    service_client = {
        "client_id": client.person.service_client.client_id,
        "client_secret": client.person.service_client.client_secret,
    }
    return "--static-oauth-client-info", json.dumps(service_client)


def test_mcp_remote(client: Client) -> None:
    node = programs.node()
    if node is None:
        programs.skip_without_node()
    first = client.run(*through_mcp_remote(node, client))
    client.assert_used_tools(first.report())
    # This address cannot sign in, so the second start has to use what the first one kept.
    again = client.run(*through_mcp_remote(node, client), more={"BROWSER_EMAIL": "nobody"})
    client.assert_used_tools(again.report())
    assert again.browser_log == ""
    assert client.registrations() == 1


def test_mcp_remote_with_a_service_client(client: Client) -> None:
    node = programs.node()
    if node is None:
        programs.skip_without_node()
    finished = client.run(*through_mcp_remote(node, client), "--client-credentials", *service_client(client))
    client.assert_used_tools(finished.report())
    assert client.registrations() == 0


def test_mcp_remote_on_a_machine_without_a_browser(client: Client) -> None:
    """The device flow: the code is read from the program's output, and approved by a person elsewhere."""
    node = programs.node()
    if node is None:
        programs.skip_without_node()
    environment = programs.environment(client.home, client.person.email)
    command = (*through_mcp_remote(node, client), "--device-code", *service_client(client))
    with programs.started(command, environment) as running:
        url = running.wait_for(r"(http\S+/device\S*)", programs.ERRORS)
        with client.gateway.browser(client.person) as browser:
            decide_device(browser, url)
        finished = running.finished()
    client.assert_used_tools(finished.report())
    assert client.registrations() == 0


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
def test_the_python_sdk_as_a_service_client(client: Client, method: str) -> None:
    service_client = client.person.service_client
    more = {"SERVICE_CLIENT_ID": service_client.client_id, "SERVICE_CLIENT_SECRET": service_client.client_secret}
    program = (sys.executable, "-m", "tests.clients.python.headless_sdk_2")
    client.assert_used_tools(client.run(*program, client.gateway.mcp_url, method, more=more).report())
    assert client.registrations() == 0


@pytest.fixture
def provider(client: Client) -> Iterator[AssertionProvider]:
    """The person's identity provider, which the organization trusts, and where the person has signed in."""
    known = client.person.service_client
    with running_provider() as provider:
        provider.signed_in["the ID token"] = (known.client_id, "subject-1")
        wanted = {"org_id": known.org_id, "client_id": known.client_id, "issuer": provider.url, "subject": "subject-1"}
        client.gateway.operator.run("trust_issuer", **wanted)
        yield provider


def assert_acted(client: Client, provider: AssertionProvider, *command: str) -> None:
    """The program has called a tool with tokens for assertions; the log names the person and the service client."""
    known = client.person.service_client
    more = {
        "SERVICE_CLIENT_ID": known.client_id,
        "SERVICE_CLIENT_SECRET": known.client_secret,
        "ID_TOKEN": "the ID token",
    }
    origin = client.gateway.web.origin
    seen = client.run(*command, client.gateway.mcp_url, origin, f"{provider.url}/token", more=more).report()
    client.assert_used_tools(seen)
    assert client.registrations() == 0
    assert "/token" in provider.asked
    select = "SELECT user_label, client_id FROM audit_requestauditentry WHERE tool = 'acme_whoami' AND client_id = "
    rows = client.gateway.deployment.database.select(f"{select}'{known.client_id}' ORDER BY id DESC")
    name = client.person.email.partition("@")[0].title()
    assert rows[0] == (f"Owner of {name}", known.client_id)


def test_the_python_sdk_with_identity_assertions(client: Client, provider: AssertionProvider) -> None:
    assert_acted(client, provider, sys.executable, "-m", "tests.clients.python.assertion_sdk_2")


def test_the_typescript_sdk_with_identity_assertions(client: Client, provider: AssertionProvider) -> None:
    node = programs.node()
    if node is None:
        programs.skip_without_node()
    assert_acted(client, provider, node, str(NODE_PROGRAMS / "assertion_client.mjs"))


@pytest.mark.parametrize("revision", ["legacy", "modern"])
def test_the_inspector_on_the_command_line(client: Client, revision: str) -> None:
    node = programs.newer_node()
    if node is None:
        programs.skip_without_newer_node()
    spoken = ("--protocol-era", revision)
    listed = inspect(client, node, *spoken, "--method", "tools/list", "--strict")
    more = ("--method", "tools/call", "--tool-name", "acme_whoami", "--stored-auth-only")
    called = inspect(client, node, *spoken, *more)
    tools = [tool["name"] for tool in listed["tools"]]
    client.assert_used_tools({"tools": tools, "called": called["structuredContent"]})
    assert client.registrations() == 1


def inspect(client: Client, node: str, *arguments: str) -> dict[str, Any]:
    """The result of one method."""
    callback = f"http://127.0.0.1:{free_port()}/oauth/callback"
    connection = ("--cli", client.gateway.mcp_url, "--transport", "http", "--callback-url", callback)
    output: Sequence[str] = ("--format", "json", "--quiet")
    finished = client.run(node, str(INSPECTOR), *connection, *arguments, *output, more=INSPECTOR_VARIABLES)
    assert finished.exit_code == 0, str(finished)
    answer: dict[str, Any] = json.loads(finished.output)
    found: dict[str, Any] = answer.get("result", answer)
    return found
