"""Vendors that others have written, or their frameworks: each is listed and called on every route, and may die.

A vendor that is killed and started again has forgotten its sessions. That costs one handshake, and no call.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import httpx
import msgspec
import pytest

from tests.clients import programs
from tests.e2e import agent
from tests.e2e.agent import ServiceClient
from tests.e2e.shared_gateway import Gateway, keyless_catalog
from tests.vendors import servers
from tests.vendors.processes import PLAIN_HTTP, RunningServer
from tests.vendors.wire_tap import WireTap, wire_tap

pytest_plugins = ("tests.vendors.fixtures", "tests.e2e.fixtures")

CALLERS = 12


@dataclass(frozen=True)
class Kind:
    """How to start a vendor, how many tools it shows to callers, and a call with a part of its answer."""

    start: Callable[[], AbstractContextManager[RunningServer]]
    tools: int
    tool: str
    arguments: dict[str, Any]
    answer: str
    needs_node: bool = False
    same_each_time: tuple[str, dict[str, Any]] | None = None  # a call whose answer does not depend on the time
    is_modern: bool = False  # it speaks MCP 2026-07-28 too
    entry: str = ""  # more of its entry in the catalog


GREETING = {"words": "grüße"}
ZONE = {"timezone": "Europe/Berlin"}
WRONG_ZONE = ("get_current_time", {"timezone": "Nowhere/Atlantis"})
STRUCTURED = ("get-structured-content", {"location": "Chicago"})
KINDS = {
    "node": Kind(servers.everything_server, 12, "echo", {"message": "grüße"}, "grüße", True, STRUCTURED),
    "proxied": Kind(servers.time_server, 2, "get_current_time", ZONE, "Europe/Berlin", False, WRONG_ZONE),
    "wrapped": Kind(
        *(servers.wrapped_time_server, 2, "get_current_time", ZONE, "Europe/Berlin", False, WRONG_ZONE),
        entry="newest_protocol = false\n",  # in the newest revision it lists nothing of an older program
    ),
    "fastmcp": Kind(partial(servers.echo_server, "fastmcp"), 1, "echo", GREETING, "grüße", is_modern=True),
    "sdkone": Kind(partial(servers.echo_server, "sdk_1"), 1, "echo", GREETING, "grüße"),
    "sdktwo": Kind(partial(servers.echo_server, "sdk_2"), 4, "echo", GREETING, "grüße", is_modern=True),
}


class Vendor:
    """A running vendor behind a tap, in the gateway's catalog as `slug`."""

    def __init__(self, slug: str, kind: Kind, stack: contextlib.ExitStack) -> None:
        self.slug, self.kind, self._stack = slug, kind, stack
        self.server = stack.enter_context(kind.start())
        self.tap: WireTap = stack.enter_context(wire_tap(port_of(self.server)))

    def kill_and_start_again(self) -> None:
        """Dead between two instructions, with all its children; then another one is at its place."""
        os.killpg(self.server.process.pid, signal.SIGKILL)
        self.server.process.wait()
        self.server = self._stack.enter_context(self.kind.start())
        self.tap.target_port = port_of(self.server)


def port_of(server: RunningServer) -> int:
    """Where it listens."""
    port = urlsplit(server.origin).port
    assert port is not None
    return port


@pytest.fixture(scope="module", params=list(KINDS))
def vendor(request: pytest.FixtureRequest, gateway: Gateway) -> Iterator[Vendor]:
    """Each kind in turn, but for the one that a machine without Node.js goes without."""
    slug, kind = request.param, KINDS[request.param]
    if kind.needs_node and not servers.has_node():
        programs.skip_without_node()
    with contextlib.ExitStack() as stack:
        made = Vendor(slug, kind, stack)
        gateway.operator.run("load_catalog", text=keyless_catalog(slug, made.tap.mcp_url, kind.entry))
        yield made


class Caller:
    """A service client that is connected to the vendor, and its two bearers."""

    def __init__(self, gateway: Gateway, vendor: Vendor, http: httpx.Client) -> None:
        self.vendor, self.http = vendor, http
        self.service_client: ServiceClient = gateway.new_service_client({vendor.slug: {}})
        self.token = agent.access_token(http, self.service_client)

    def names(self) -> list[str]:
        """Names in tools/list."""
        listed = agent.result(agent.rpc(self.http, self.service_client.agent_key, "tools/list"))["tools"]
        return [tool["name"] for tool in listed]

    def call(self) -> None:
        """A call on the unified endpoint is answered."""
        kind = self.vendor.kind
        name = f"{self.vendor.slug}_{kind.tool}"
        found = agent.result(agent.call(self.http, self.service_client.agent_key, name, **kind.arguments))
        assert kind.answer in found["content"][0]["text"]

    def cli(self) -> None:
        """A CLI call is answered."""
        kind = self.vendor.kind
        answer = agent.cli(self.http, self.token, self.vendor.slug, kind.tool.replace("_", "-"), **kind.arguments)
        assert answer.status_code == 200, answer.text
        assert kind.answer in answer.json()["result"]["content"][0]["text"]

    def commands(self) -> list[str]:
        """Commands in the CLI's schema."""
        headers = {"Authorization": f"Bearer {self.token}"}
        answer = self.http.get(f"/v1/{self.vendor.slug}/cli/schema", headers=headers)
        assert answer.status_code == 200, answer.text
        return [command["command"] for command in answer.json()["commands"]]


def test_a_vendor_is_listed_and_called_and_may_die(gateway: Gateway, vendor: Vendor) -> None:
    with gateway.web.client() as http:
        caller = Caller(gateway, vendor, http)
        names = caller.names()
        assert len(names) == len(caller.commands()) == vendor.kind.tools, names
        assert all(re.fullmatch(rf"{vendor.slug}_[A-Za-z0-9_-]{{1,57}}", name) for name in names)
        assert names == sorted(names)
        caller.call()
        caller.cli()
        for _ in range(2):
            before = vendor.tap.methods()
            vendor.kill_and_start_again()
            with ThreadPoolExecutor(CALLERS) as pool:
                running = [pool.submit(each) for each in [caller.call, caller.cli] * (CALLERS // 2)]
                for one in running:
                    one.result()
            since = vendor.tap.methods() - before
            handshakes = 0 if vendor.kind.is_modern else 1
            assert (since["initialize"], since["notifications/initialized"]) == (handshakes, handshakes)
            assert since["server/discover"] == 0
        assert caller.names() == names


class Message(msgspec.Struct):
    """A JSON-RPC answer whose result stays the bytes it is."""

    result: msgspec.Raw


def result_bytes(answer: httpx.Response) -> bytes:
    """The result as it came, from JSON or from the last event of a stream."""
    assert answer.status_code == 200, answer.text
    content = answer.content
    if answer.headers["Content-Type"].startswith("text/event-stream"):
        content = [line for line in content.splitlines() if line.startswith(b"data: {")][-1][len(b"data: ") :]
    return bytes(msgspec.json.decode(content, type=Message).result)


RESERVED = "io.modelcontextprotocol/"
MODERN_META = {f"{RESERVED}protocolVersion": "2026-07-28", f"{RESERVED}clientCapabilities": {}}


def direct_modern_result(vendor: Vendor, tool: str, arguments: dict[str, Any]) -> bytes:
    """As `direct_result`, in MCP 2026-07-28, without what only that revision has."""
    params = {"name": tool, "arguments": arguments, "_meta": MODERN_META}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    said = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool}
    with httpx.Client(headers={"Accept": servers.MCP_ACCEPT, **said}, **PLAIN_HTTP, timeout=30.0) as http:
        raw = result_bytes(http.post(vendor.server.mcp_url, json=body))
    found: dict[str, Any] = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    del found["resultType"]
    meta = msgspec.json.decode(found.pop("_meta"), type=dict[str, msgspec.Raw])
    del meta[f"{RESERVED}serverInfo"]
    return msgspec.json.encode({**found, "_meta": meta} if meta else found)


def direct_result(vendor: Vendor, tool: str, arguments: dict[str, Any]) -> bytes:
    """The result of a call to the vendor itself."""
    if vendor.kind.is_modern:
        return direct_modern_result(vendor, tool, arguments)
    with httpx.Client(headers={"Accept": servers.MCP_ACCEPT}, **PLAIN_HTTP, timeout=30.0) as http:
        opened = http.post(vendor.server.mcp_url, json=servers.INITIALIZE)
        session = opened.headers["Mcp-Session-Id"]
        http.headers.update({"MCP-Protocol-Version": "2025-11-25", "Mcp-Session-Id": session})
        http.post(vendor.server.mcp_url, json={"jsonrpc": "2.0", "method": "notifications/initialized"})
        params = {"name": tool, "arguments": arguments}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        return result_bytes(http.post(vendor.server.mcp_url, json=body))


def members(raw: bytes) -> dict[str, bytes]:
    return {name: bytes(value) for name, value in msgspec.json.decode(raw, type=dict[str, msgspec.Raw]).items()}


def test_a_result_is_the_vendors_own_byte_for_byte(gateway: Gateway, vendor: Vendor) -> None:
    tool, arguments = vendor.kind.same_each_time or (vendor.kind.tool, vendor.kind.arguments)
    with gateway.web.client() as http:
        caller = Caller(gateway, vendor, http)
        answer = agent.call(http, caller.service_client.agent_key, f"{vendor.slug}_{tool}", **arguments)
        own = direct_result(vendor, tool, arguments)
        if vendor.kind.is_modern:  # members were taken off: the others may stand in another order
            assert members(result_bytes(answer)) == members(own)
        else:
            assert result_bytes(answer) == own


def test_no_bearer_of_a_caller_reaches_a_vendor(gateway: Gateway, vendor: Vendor) -> None:
    with gateway.web.client() as http:
        caller = Caller(gateway, vendor, http)
        caller.call()
        caller.cli()
        sent = vendor.tap.sent()
    assert b"POST /mcp" in sent
    assert b"authorization:" not in sent.lower()
    for secret in (caller.service_client.agent_key, caller.token):
        assert secret.encode() not in sent
