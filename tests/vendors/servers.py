"""The servers that tests talk to, each as a context manager: third-party vendors, vendors of our own made
with third-party frameworks, and the two demo parts.

`with time_server() as server: server.mcp_url`. Session-wide fixtures over these are in tests/vendors/fixtures.py.
"""

from __future__ import annotations

import contextlib
import json
import platform
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.clients.programs import NEWER_NODE, newer_node
from tests.vendors.processes import (
    PLAIN_HTTP,
    ROOT,
    CommandFor,
    RunningServer,
    ServerStartError,
    free_port,
    running_server,
)

HERE = Path(__file__).resolve().parent
VENDOR_PROGRAMS = ROOT / ".venv-vendors" / "bin"
CLIENT_PROGRAMS = ROOT / ".venv-clients"
# The Python that each framework of echo_server.py is installed in.
FRAMEWORKS = {
    "sdk_1": CLIENT_PROGRAMS / "python_sdk_1/bin/python",
    "sdk_2": Path(sys.executable),
    "fastmcp": CLIENT_PROGRAMS / "fastmcp/bin/python",
}
EVERYTHING_ENTRY = HERE / "node_modules/@modelcontextprotocol/server-everything/dist/index.js"
OIDC_PROVIDER = HERE / "node_modules/oidc-provider"
INSTALL_HINT = "is not installed; run: sh scripts/install_test_vendors.sh"
# BASE_URL in the suite's settings.
SUITE_ORIGIN = "http://testserver"
MCP_ACCEPT = "application/json, text/event-stream"
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "gateway-tests", "version": "1"},
    },
}


@dataclass(frozen=True)
class DemoVendor:
    """A running demo vendor server."""

    server: RunningServer

    @property
    def mcp_url(self) -> str:
        """Where it takes its calls; it wants an X-Api-Key."""
        return self.server.mcp_url

    @staticmethod
    def new_api_key() -> str:
        """A key that no other test uses, and with it devices and tickets that no other test sees."""
        return f"demo-{secrets.token_hex(8)}"

    def stats(self) -> dict[str, Any]:
        """Counts since the start: {"methods": {name: n}, "tools": {name: n}, "unauthorized": n, "tenants": n}."""
        answer = httpx.get(f"{self.server.origin}/_stats", **PLAIN_HTTP, timeout=5.0)
        answer.raise_for_status()
        counts: dict[str, Any] = answer.json()
        return counts


@dataclass(frozen=True)
class DemoIdentityProvider:
    """A running demo identity provider and what its one client needs to know."""

    server: RunningServer
    client_id: str
    client_secret: str

    @property
    def issuer(self) -> str:
        """The issuer; every endpoint is below it."""
        return self.server.origin

    @property
    def discovery_url(self) -> str:
        """The OpenID Connect configuration."""
        return f"{self.issuer}/.well-known/openid-configuration"


def has_node() -> bool:
    """Whether this machine can run the Node server at all."""
    return shutil.which("node") is not None


@contextlib.contextmanager
def everything_server() -> Iterator[RunningServer]:
    """server-everything of the MCP project: event streams, sessions, 13 tools. Raises: ServerStartError."""
    if not EVERYTHING_ENTRY.exists():
        raise ServerStartError(f"server-everything {INSTALL_HINT}")
    node = shutil.which("node") or "node"

    # The port goes by the environment, hence `env`: the command is all that knows it.
    def command_for(port: int) -> Sequence[str]:
        program = (node, "--require", str(HERE / "loopback.cjs"), str(EVERYTHING_ENTRY), "streamableHttp")
        return ("env", f"PORT={port}", *program)

    with running_server("everything", command_for, _initializes) as server:
        yield server


@contextlib.contextmanager
def time_server() -> Iterator[RunningServer]:
    """mcp-server-time behind mcp-proxy: answers as JSON, with sessions, 2 tools. Raises: ServerStartError."""
    proxy, server_program = VENDOR_PROGRAMS / "mcp-proxy", VENDOR_PROGRAMS / "mcp-server-time"
    if not (proxy.exists() and server_program.exists()):
        raise ServerStartError(f"mcp-server-time {INSTALL_HINT}")

    def command_for(port: int) -> Sequence[str]:
        listen = ("--port", str(port), "--host", "127.0.0.1")
        return (str(proxy), *listen, "--", str(server_program), "--local-timezone", "UTC")

    with running_server("time", command_for, _initializes) as server:
        yield server


@contextlib.contextmanager
def conformance_server(offers: str = "everything") -> Iterator[RunningServer]:
    """A server with what the protocol's conformance suite asks for, or with its `tools`. Raises: ServerStartError."""
    with running_server(f"conformance-{offers}", _program("conformance_server.py", offers), _initializes) as server:
        yield server


@contextlib.contextmanager
def echo_server(framework: str) -> Iterator[RunningServer]:
    """A small server made with `framework`, one of FRAMEWORKS. Raises: ServerStartError."""
    python = FRAMEWORKS[framework]
    if not python.exists():
        raise ServerStartError(f"{framework} {INSTALL_HINT}")
    command_for = _program("echo_server.py", framework, python=python)
    with running_server(framework, command_for, _initializes) as server:
        yield server


@contextlib.contextmanager
def wrapped_time_server() -> Iterator[RunningServer]:
    """mcp-server-time behind FastMCP: answers as event streams, with sessions, 2 tools. Raises: ServerStartError."""
    program, server_program = FRAMEWORKS["fastmcp"].with_name("fastmcp"), VENDOR_PROGRAMS / "mcp-server-time"
    if not (program.exists() and server_program.exists()):
        raise ServerStartError(f"FastMCP or mcp-server-time {INSTALL_HINT}")
    wrapped = {"command": str(server_program), "args": ["--local-timezone", "UTC"]}
    with tempfile.TemporaryDirectory(prefix="wrapped-") as folder:
        configuration = Path(folder) / "servers.json"
        configuration.write_text(json.dumps({"mcpServers": {"time": wrapped}}))

        def command_for(port: int) -> Sequence[str]:
            listen = ("--transport", "http", "--host", "127.0.0.1", "--port", str(port), "--no-banner")
            return (str(program), "run", str(configuration), *listen)

        with running_server("wrapped-time", command_for, _initializes) as server:
            yield server


def has_collector() -> bool:
    """Whether there is a build of Rotel for this computer."""
    return (platform.system(), platform.machine()) == ("Linux", "x86_64") and sys.version_info < (3, 14)


@contextlib.contextmanager
def collector(signal: str = "logs") -> Iterator[RunningServer]:
    """Rotel, an OpenTelemetry collector: takes OTLP over HTTP and writes the records of a signal to its log, in words.

    Raises: ServerStartError.
    """
    program = next((ROOT / ".venv-collector").glob("lib/python*/site-packages/rotel/rotel-agent"), None)
    if program is None:
        raise ServerStartError(f"rotel {INSTALL_HINT}")

    def command_for(port: int) -> Sequence[str]:
        listen = ("--otlp-http-endpoint", f"127.0.0.1:{port}", "--otlp-grpc-endpoint", f"127.0.0.1:{free_port()}")
        in_words = ("--debug-log", signal, "--debug-log-verbosity", "detailed", "--disable-batching")
        return (str(program), "start", *listen, *in_words, "--exporter", "blackhole")

    with running_server("collector", command_for, _is_there) as server:
        yield server


def _program(name: str, *arguments: str, python: Path = Path(sys.executable)) -> CommandFor:
    """The command for one of tests/vendors/programs."""
    return lambda port: (str(python), str(HERE / "programs" / name), *arguments, str(port))


# The catalog entry; `more`: lines of its table `oauth`.
OAUTH_VENDOR = """
[[vendor]]
slug = "signin"
name = "Sign In"
url = "{url}"
docs_url = "https://vendor.example/docs"
timeout_seconds = 10
[vendor.oauth]
{more}
"""


@dataclass(frozen=True)
class OAuthVendor:
    """A running vendor that people sign in to, with its own authorization server."""

    server: RunningServer

    @property
    def mcp_url(self) -> str:
        return self.server.mcp_url

    def control(self, **values: object) -> None:
        """Set lifetimes and faults."""
        self._post("_control", values)

    def end_all(self) -> None:
        """The vendor forgets every sign-in."""
        self._post("_end_all", {})

    def end_access(self) -> None:
        """The vendor forgets every access token, and no refresh token."""
        self._post("_end_access", {})

    def stats(self) -> dict[str, int]:
        answer = httpx.get(f"{self.server.origin}/_stats", **PLAIN_HTTP, timeout=5.0)
        answer.raise_for_status()
        counts: dict[str, int] = answer.json()
        return counts

    def sign_in(self, authorization_url: str) -> str:
        """Signs in as a browser does: the address that the server sends it back to."""
        answer = httpx.get(authorization_url, **PLAIN_HTTP, timeout=5.0)
        assert answer.status_code == 302, answer.text
        location: str = answer.headers["Location"]
        return location

    def _post(self, path: str, values: dict[str, object]) -> None:
        httpx.post(f"{self.server.origin}/{path}", json=values, **PLAIN_HTTP, timeout=5.0).raise_for_status()


@contextlib.contextmanager
def oauth_vendor_server() -> Iterator[OAuthVendor]:
    """The Python SDK's authorization server and a vendor behind it. Raises: ServerStartError."""
    python = VENDOR_PROGRAMS / "python"
    if not python.exists():
        raise ServerStartError(f"the SDK {INSTALL_HINT}")
    with running_server("oauth", _program("oauth_server.py", python=python), _asks_for_a_token) as server:
        yield OAuthVendor(server)


@contextlib.contextmanager
def node_oauth_server(program: str) -> Iterator[RunningServer]:
    """A vendor of Node.js that people sign in to, such as `oidc_server.mjs`. Raises: ServerStartError."""
    node = newer_node()
    if node is None or not OIDC_PROVIDER.exists():
        raise ServerStartError(f"{program} needs Node.js {NEWER_NODE}, and oidc-provider {INSTALL_HINT}")

    def command_for(port: int) -> Sequence[str]:
        return (node, "--require", str(HERE / "loopback.cjs"), str(HERE / "programs" / program), str(port))

    with running_server(program.removesuffix(".mjs"), command_for, _asks_for_a_token) as server:
        yield server


@contextlib.contextmanager
def demo_vendor_server() -> Iterator[DemoVendor]:
    """The demo vendor with an empty folder of its own. Raises: ServerStartError."""
    with tempfile.TemporaryDirectory(prefix="demo-vendor-") as data:

        def command_for(port: int) -> Sequence[str]:
            return (sys.executable, "-m", "demo.vendor_server", "--port", str(port), "--data", data)

        with running_server("demo-vendor", command_for, _is_healthy) as server:
            yield DemoVendor(server)


@contextlib.contextmanager
def demo_identity_provider(redirect_origins: Sequence[str]) -> Iterator[DemoIdentityProvider]:
    """The demo identity provider for a client at `redirect_origins`. Raises: ServerStartError."""
    client_id, client_secret = "gateway", secrets.token_urlsafe(32)
    with tempfile.TemporaryDirectory(prefix="demo-identity-") as keys:

        def command_for(port: int) -> Sequence[str]:
            origins = [part for origin in redirect_origins for part in ("--redirect-origin", origin)]
            program = (sys.executable, "-m", "demo.identity_provider", "--port", str(port), "--keys", keys)
            return (*program, "--client-id", client_id, *origins)

        environment = {"DEMO_IDP_CLIENT_SECRET": client_secret}
        with running_server("demo-identity", command_for, _is_healthy, environment) as server:
            yield DemoIdentityProvider(server, client_id, client_secret)


def _is_healthy(client: httpx.Client, origin: str) -> bool:
    return client.get(f"{origin}/healthz").status_code == 200


def _is_there(client: httpx.Client, origin: str) -> bool:
    return client.get(origin).status_code == 404


def _initializes(client: httpx.Client, origin: str) -> bool:
    answer = client.post(f"{origin}/mcp", json=INITIALIZE, headers={"Accept": MCP_ACCEPT})
    session = answer.headers.get("mcp-session-id")
    if session is not None:
        client.delete(f"{origin}/mcp", headers={"Mcp-Session-Id": session})
    return answer.status_code == 200


def _asks_for_a_token(client: httpx.Client, origin: str) -> bool:
    return client.post(f"{origin}/mcp", json=INITIALIZE, headers={"Accept": MCP_ACCEPT}).status_code == 401
