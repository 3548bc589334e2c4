"""The authorization server before the conformance suite of the protocol's own project."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.clients import programs
from tests.clients.browser import authorize, deliver
from tests.clients.oauth_client import OAuthClient
from tests.clients.sign_in_gateway import Person, SignInGateway
from tests.vendors.processes import free_port

pytest_plugins = ("tests.vendors.fixtures", "tests.e2e.fixtures", "tests.clients.fixtures")
pytestmark = pytest.mark.one_back_end

SUITE = programs.MODULES / "@modelcontextprotocol/conformance/dist/index.js"


def test_the_authorization_server_conforms(sign_in_gateway: SignInGateway, person: Person, tmp_path: Path) -> None:
    node = programs.newer_node()
    if node is None:
        programs.skip_without_newer_node()
    port = free_port()
    body = {"client_name": "conformance", "redirect_uris": [f"http://127.0.0.1:{port}/callback"]}
    with sign_in_gateway.web.client() as http:
        client_id = OAuthClient(http, body).client_id
    target = ("--url", sign_in_gateway.web.origin, "--resource", sign_in_gateway.mcp_url)
    client = ("--client-id", client_id, "--port", str(port))
    command = (node, str(SUITE), "authorization", *target, *client, "-o", str(tmp_path / "results"))
    with programs.started(command, programs.environment(tmp_path, person.email)) as suite:
        url = suite.wait_for(r"(http\S+/oauth/authorize\?\S+)")
        with sign_in_gateway.browser(person) as browser:
            deliver(authorize(browser, url))
        finished = suite.finished()
    assert finished.exit_code == 0, str(finished)
    checks = [
        check for path in sorted((tmp_path / "results").rglob("checks.json")) for check in json.loads(path.read_text())
    ]
    assert checks, str(finished)
    assert [check for check in checks if check["status"] not in {"SUCCESS", "INFO"}] == []
