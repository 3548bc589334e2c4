"""The parts around the gateway, each driven directly and without it: a failure through the gateway that does not show
here is the gateway's."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import httpx2
import jwt
import psutil
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, TextContent

from tests.vendors import servers
from tests.vendors.browser import SignInError, walk_sign_in
from tests.vendors.processes import PLAIN_HTTP, RunningServer, ServerStartError, running_server
from tests.vendors.servers import SUITE_ORIGIN, DemoIdentityProvider, DemoVendor

pytest_plugins = ("tests.vendors.fixtures",)
pytestmark = pytest.mark.one_back_end

READ_TIMEOUT_S = 20.0
MODES = ["legacy", "auto"]
UNFINISHED_REQUEST = (
    b"POST /oauth2/token HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    b"Content-Length: 100\r\n\r\ncode="
)


@contextlib.asynccontextmanager
async def connected(url: str, mode: str, **headers: str) -> AsyncIterator[Client]:
    """The official client, connected; header names are written with underscores."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with (
        httpx2.AsyncClient(headers=named, **PLAIN_HTTP, timeout=READ_TIMEOUT_S) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode, read_timeout_seconds=READ_TIMEOUT_S) as client,
    ):
        yield client


def post_initialize(url: str, **headers: str) -> httpx.Response:
    """The plain HTTP answer to a handshake."""
    named = {"Accept": servers.MCP_ACCEPT, **{name.replace("_", "-"): value for name, value in headers.items()}}
    return httpx.post(url, json=servers.INITIALIZE, headers=named, **PLAIN_HTTP, timeout=READ_TIMEOUT_S)


def post_to_unknown_session(url: str, **headers: str) -> httpx.Response:
    """The answer to a call in a session that never was."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    named = {
        "Accept": servers.MCP_ACCEPT,
        "Mcp-Session-Id": "0" * 32,
        "MCP-Protocol-Version": "2025-11-25",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    return httpx.post(url, json=message, headers=named, **PLAIN_HTTP, timeout=READ_TIMEOUT_S)


def text_of(result: CallToolResult) -> str:
    """The text of a result that is one piece of text."""
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


def wait_until_read(origin: str) -> None:
    """The server has taken in what was sent before: it has since answered a request that came later."""
    httpx.get(f"{origin}/healthz", **PLAIN_HTTP).raise_for_status()


class TestEverything:
    """server-everything: event streams, sessions, progress, output schemas."""

    @pytest.mark.parametrize("mode", MODES)
    async def test_lists_and_calls(self, everything_server: RunningServer, mode: str) -> None:
        async with connected(everything_server.mcp_url, mode) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert {"echo", "get-sum", "get-structured-content", "trigger-long-running-operation"} <= set(tools)
            assert tools["get-structured-content"].output_schema is not None
            echoed = await client.call_tool("echo", {"message": "straight to the vendor"})
            assert "straight to the vendor" in text_of(echoed)
            forecast = await client.call_tool("get-structured-content", {"location": "New York"})
            assert set(forecast.structured_content) == {"temperature", "conditions", "humidity"}

    async def test_reports_progress(self, everything_server: RunningServer) -> None:
        seen: list[float] = []

        async def note(progress: float, total: float | None, message: str | None) -> None:
            seen.append(progress)

        async with connected(everything_server.mcp_url, "legacy") as client:
            arguments = {"duration": 0.4, "steps": 4}
            await client.call_tool("trigger-long-running-operation", arguments, progress_callback=note)
        assert seen == [1, 2, 3, 4]

    def test_answers_as_an_event_stream_with_a_session(self, everything_server: RunningServer) -> None:
        response = post_initialize(everything_server.mcp_url)
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.headers["mcp-session-id"]
        lost = post_to_unknown_session(everything_server.mcp_url)
        assert (lost.status_code, "session" in lost.text.lower()) == (400, True)

    async def test_environment_of_the_tests_does_not_reach_it(self, everything_server: RunningServer) -> None:
        async with connected(everything_server.mcp_url, "legacy") as client:
            shown = text_of(await client.call_tool("get-env", {}))
        assert '"PORT"' in shown
        assert "GATEWAY" not in shown
        assert "DATABASE_URL" not in shown

    def test_listens_on_loopback_only(self, everything_server: RunningServer) -> None:
        sockets = psutil.Process(everything_server.process.pid).net_connections(kind="tcp")
        assert {entry.laddr.ip for entry in sockets if entry.status == psutil.CONN_LISTEN} == {"127.0.0.1"}


class TestTime:
    """mcp-server-time behind mcp-proxy: JSON answers, sessions."""

    @pytest.mark.parametrize("mode", MODES)
    async def test_lists_and_calls(self, time_server: RunningServer, mode: str) -> None:
        async with connected(time_server.mcp_url, mode) as client:
            assert {tool.name for tool in (await client.list_tools()).tools} == {"get_current_time", "convert_time"}
            zones = {"source_timezone": "Asia/Tokyo", "time": "12:00", "target_timezone": "UTC"}
            converted = await client.call_tool("convert_time", zones)
            assert not converted.is_error
            assert "T03:00:00+00:00" in text_of(converted)
            wrong = await client.call_tool("get_current_time", {"timezone": "Nowhere/Land"})
            assert wrong.is_error

    def test_answers_as_json_with_a_session(self, time_server: RunningServer) -> None:
        response = post_initialize(time_server.mcp_url)
        assert response.headers["content-type"].startswith("application/json")
        assert response.headers["mcp-session-id"]
        assert post_to_unknown_session(time_server.mcp_url).status_code == 404


class TestDemoVendor:
    """The demo vendor server over a socket."""

    @pytest.mark.parametrize("mode", MODES)
    async def test_lists_and_calls(self, demo_vendor: DemoVendor, mode: str) -> None:
        before = demo_vendor.stats()["tools"]
        seen: list[float] = []

        async def note(progress: float, total: float | None, message: str | None) -> None:
            seen.append(progress)

        async with connected(demo_vendor.mcp_url, mode, X_Api_Key=demo_vendor.new_api_key()) as client:
            tools = [tool.name for tool in (await client.list_tools()).tools]
            assert len(tools) == 9
            assert all(name.startswith("acme_") for name in tools)
            devices = await client.call_tool("acme_list_devices", {"status": "offline", "limit": 1})
            assert [device["status"] for device in devices.structured_content["devices"]] == ["offline"]
            report = {"kind": "availability", "seconds": 0.3}
            await client.call_tool("acme_run_report", report, progress_callback=note)
            assert (await client.call_tool("acme_fail", {})).is_error
        assert seen == [0, 1, 2, 3, 4, 5, 6]
        after = demo_vendor.stats()["tools"]
        called = ("acme_list_devices", "acme_run_report", "acme_fail")
        assert {name: after[name] - before.get(name, 0) for name in called} == dict.fromkeys(called, 1)

    def test_answers_as_an_event_stream_with_a_session(self, demo_vendor: DemoVendor) -> None:
        key = demo_vendor.new_api_key()
        response = post_initialize(demo_vendor.mcp_url, X_Api_Key=key)
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.headers["mcp-session-id"]
        assert post_to_unknown_session(demo_vendor.mcp_url, X_Api_Key=key).status_code == 404

    @pytest.mark.parametrize("headers", [{}, {"X_Api_Key": "demo-short"}, {"Authorization": "Bearer demo-0123456789"}])
    def test_call_without_a_usable_key_is_unauthorized(self, demo_vendor: DemoVendor, headers: dict[str, str]) -> None:
        response = post_initialize(demo_vendor.mcp_url, **headers)
        assert (response.status_code, response.json()["error"]) == (401, "unauthorized")

    async def test_client_without_a_key_does_not_connect(self, demo_vendor: DemoVendor) -> None:
        refusal = pytest.RaisesExc(MCPError, match="error response")
        with pytest.RaisesGroup(refusal, flatten_subgroups=True):
            async with connected(demo_vendor.mcp_url, "legacy"):
                pass


class RelyingParty:
    """A gateway as small as can be: it starts a sign-in, takes the callback, checks the ID token and sets a cookie."""

    def __init__(self, provider: DemoIdentityProvider) -> None:
        self.provider = provider
        self.configuration: dict[str, Any] = httpx.get(provider.discovery_url, **PLAIN_HTTP).json()
        self.verifier, self.state, self.nonce = (secrets.token_urlsafe(48) for _ in range(3))
        self.callback = f"{SUITE_ORIGIN}/oidc/callback/"
        self.claims: dict[str, Any] = {}

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/oidc/authenticate/":
            return httpx.Response(302, headers={"Location": self.authorization_url()})
        if request.url.path == "/oidc/callback/":
            assert request.url.params["state"] == self.state
            assert request.url.params["iss"] == self.provider.issuer
            if "code" not in request.url.params:
                return httpx.Response(403, text=request.url.params["error"])
            self.claims = self.exchange(request.url.params["code"])
            return httpx.Response(302, headers={"Location": "/", "Set-Cookie": "session=1; Path=/"})
        return httpx.Response(200, text=request.headers.get("cookie", ""))

    def authorization_url(self) -> str:
        hashed = base64.urlsafe_b64encode(hashlib.sha256(self.verifier.encode()).digest()).rstrip(b"=")
        query = {
            "response_type": "code",
            "client_id": self.provider.client_id,
            "redirect_uri": self.callback,
            "scope": "openid email profile",
            "state": self.state,
            "nonce": self.nonce,
            "code_challenge": hashed.decode(),
            "code_challenge_method": "S256",
        }
        return f"{self.configuration['authorization_endpoint']}?{urlencode(query)}"

    def exchange(self, code: str) -> dict[str, Any]:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.callback,
            "code_verifier": self.verifier,
            "client_id": self.provider.client_id,
            "client_secret": self.provider.client_secret,
        }
        tokens = httpx.post(self.configuration["token_endpoint"], data=form, **PLAIN_HTTP).raise_for_status().json()
        keys = jwt.PyJWKSet.from_dict(httpx.get(self.configuration["jwks_uri"], **PLAIN_HTTP).json())
        key = keys[jwt.get_unverified_header(tokens["id_token"])["kid"]]
        audience, issuer = self.provider.client_id, self.provider.issuer
        claims: dict[str, Any] = jwt.decode(
            tokens["id_token"], key.key, algorithms=["RS256"], audience=audience, issuer=issuer
        )
        bearer = {"Authorization": f"Bearer {tokens['access_token']}"}
        people = httpx.get(self.configuration["userinfo_endpoint"], headers=bearer, **PLAIN_HTTP).json()
        assert {name: claims[name] for name in people} == people
        return claims


class TestDemoIdentityProvider:
    """The demo identity provider over a socket, for a client that checks everything."""

    @pytest.fixture
    def party(self, demo_identity_provider: DemoIdentityProvider) -> RelyingParty:
        return RelyingParty(demo_identity_provider)

    @pytest.fixture
    def browser(self, party: RelyingParty) -> Iterator[httpx.Client]:
        mounts = {f"all://{SUITE_ORIGIN.removeprefix('http://')}": httpx.MockTransport(party)}
        with httpx.Client(mounts=mounts, base_url=SUITE_ORIGIN, **PLAIN_HTTP) as client:
            yield client

    def test_person_signs_in(self, party: RelyingParty, browser: httpx.Client) -> None:
        response = walk_sign_in(browser, "/oidc/authenticate/?next=/", "Alice@Example.com", name="Alice A.")
        assert (response.status_code, response.text) == (200, "session=1")
        assert (party.claims["sub"], party.claims["email"]) == ("alice@example.com", "alice@example.com")
        assert (party.claims["name"], party.claims["nonce"]) == ("Alice A.", party.nonce)

    def test_person_refuses(self, browser: httpx.Client) -> None:
        response = walk_sign_in(browser, "/oidc/authenticate/", "alice@example.com", deny=True)
        assert (response.status_code, response.text) == (403, "access_denied")

    def test_what_is_no_address_stays_at_the_provider(self, browser: httpx.Client) -> None:
        with pytest.raises(SignInError, match=r"^400 from http://127\.0\.0\.1:\d+/oauth2/authorize$"):
            walk_sign_in(browser, "/oidc/authenticate/", "not an address")

    def test_log_holds_no_secret(
        self, demo_identity_provider: DemoIdentityProvider, party: RelyingParty, browser: httpx.Client
    ) -> None:
        walk_sign_in(browser, "/oidc/authenticate/", "alice@example.com")
        expected = f"Demo identity provider listening on {demo_identity_provider.issuer}\n"
        assert demo_identity_provider.server.log() == expected


class TestProcesses:
    """The promises of starting and stopping servers."""

    def test_server_is_gone_after_a_failing_test(self) -> None:
        family: list[psutil.Process] = []

        def fail_with_a_server() -> None:
            with servers.time_server() as server:
                proxy = psutil.Process(server.process.pid)
                family.extend([proxy, *proxy.children()])
                raise RuntimeError("a test failed")

        with pytest.raises(RuntimeError, match="a test failed"):
            fail_with_a_server()
        assert len(family) == 2  # the proxy and the server behind it
        gone, _ = psutil.wait_procs(family, timeout=5)
        assert len(gone) == 2

    def test_server_dies_with_a_test_run_that_is_killed(self, tmp_path: Path) -> None:
        program = (
            "import time\n"
            "from tests.vendors.servers import demo_vendor_server\n"
            "with demo_vendor_server() as vendor:\n"
            "    print(vendor.server.process.pid, flush=True)\n"
            "    time.sleep(60)\n"
        )
        # The killed program cannot remove its folders.
        environment = {**os.environ, "TMPDIR": str(tmp_path)}
        command = [sys.executable, "-c", program]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as run:
            assert run.stdout is not None
            server = psutil.Process(int(run.stdout.readline()))
            run.kill()
        gone, _ = psutil.wait_procs([server], timeout=10)
        assert gone == [server]

    def test_server_that_exits_is_reported_with_its_words(self) -> None:
        command = (sys.executable, "-c", "import sys; sys.exit('out of cheese')")
        broken = running_server("broken", lambda port: command, lambda client, origin: True)
        with pytest.raises(ServerStartError, match="out of cheese"):
            broken.__enter__()

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_demo_server_stops_at_once(self, number: signal.Signals) -> None:
        with servers.demo_identity_provider([SUITE_ORIGIN]) as provider:
            host, _, port = provider.issuer.removeprefix("http://").partition(":")
            with socket.create_connection((host, int(port)), timeout=5) as hanging:
                # A request whose body never ends must not hold the stop up.
                hanging.sendall(UNFINISHED_REQUEST)
                wait_until_read(provider.issuer)
                os.kill(provider.server.process.pid, number)
                provider.server.process.wait(20)
            assert provider.server.log().count("\n") == 1, provider.server.log()

    def test_taken_port_is_reported_in_one_line(self, demo_vendor: DemoVendor, tmp_path: Path) -> None:
        port = demo_vendor.server.origin.rpartition(":")[2]
        command = (sys.executable, "-m", "demo.vendor_server", "--port", port, "--data", str(tmp_path))
        second = subprocess.run(command, capture_output=True, text=True, timeout=30)
        assert second.returncode == 2
        assert (
            second.stderr
            == f"Demo vendor server: {demo_vendor.server.origin} cannot be bound: Address already in use\n"
        )
