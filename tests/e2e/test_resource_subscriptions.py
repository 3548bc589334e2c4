"""Subscriptions to resources of real vendors of both revisions, for clients of both, with two web servers.

The reference server announces changes of a session's subscriptions once a tool has been called in that session.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.clients import programs
from tests.e2e import agent
from tests.e2e.shared_gateway import Gateway, keyless_catalog
from tests.vendors import servers
from tests.vendors.processes import PLAIN_HTTP, free_port

pytest_plugins = ("tests.vendors.fixtures", "tests.e2e.fixtures")

EARLIER, MODERN = "2025-11-25", "2026-07-28"
META = "io.modelcontextprotocol/"
UPDATED = "notifications/resources/updated"
# By slug: the vendor, its resource as callers have it, the tool that changes it.
KINDS = {
    "reference": (
        *(servers.everything_server, "reference+demo://resource/dynamic/text/1"),
        "reference_toggle-subscriber-updates",
    ),
    "newest": (servers.conformance_server, "newest+test://watched-resource", "newest_test_change_resource"),
}


@pytest.fixture(scope="module")
def clients(gateway: Gateway) -> Iterator[list[httpx.Client]]:
    """A client of the shared web server, and one of a second server beside it."""
    with contextlib.ExitStack() as stack:
        second = stack.enter_context(gateway.deployment.web(port=free_port()))
        yield [
            stack.enter_context(httpx.Client(base_url=web.origin, **PLAIN_HTTP, timeout=15.0))
            for web in (gateway.web, second)
        ]


@pytest.fixture(scope="module", params=list(KINDS))
def subject(request: pytest.FixtureRequest, gateway: Gateway) -> Iterator[tuple[str, str, str]]:
    """An agent key, an address, and a tool that changes its resource."""
    start, address, tool = KINDS[request.param]
    if request.param == "reference" and not servers.has_node():
        programs.skip_without_node()
    with start() as server:
        gateway.operator.run("load_catalog", text=keyless_catalog(request.param, server.mcp_url))
        yield gateway.new_service_client({request.param: {}}).agent_key, address, tool


def messages(stream: httpx.Response) -> Iterator[dict[str, Any]]:
    """Those of an event stream."""
    return (json.loads(line[6:]) for line in stream.iter_lines() if line.startswith("data: {"))


def test_a_session_hears_of_changes_wherever_it_subscribes(
    clients: list[httpx.Client], subject: tuple[str, str, str]
) -> None:
    """The stream is at the first server, and the subscription comes to the second."""
    key, address, tool = subject
    first, second = clients
    sent = {"Authorization": f"Bearer {key}", "Accept": "application/json, text/event-stream"}

    def ask(client: httpx.Client, method: str, params: dict[str, Any]) -> httpx.Response:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return client.post("/v1/mcp", json=body, headers=sent)

    begun = ask(first, "initialize", {"protocolVersion": EARLIER, "capabilities": {"elicitation": {}}})
    assert begun.json()["result"]["capabilities"]["resources"]["subscribe"] is True
    sent |= {"Mcp-Session-Id": begun.headers["Mcp-Session-Id"], "MCP-Protocol-Version": EARLIER}
    with first.stream("GET", "/v1/mcp", headers=sent) as stream:
        heard = messages(stream)
        assert ask(second, "resources/subscribe", {"uri": address}).json()["result"] == {}
        assert next(heard) == {"jsonrpc": "2.0", "method": UPDATED, "params": {"uri": address}}, "told as promised"
        agent.result(agent.call(first, key, tool))
        assert next(heard) == {"jsonrpc": "2.0", "method": UPDATED, "params": {"uri": address}}
        assert ask(second, "resources/unsubscribe", {"uri": address}).json()["result"] == {}
        agent.result(agent.call(first, key, tool))  # the reference server falls silent
        assert second.delete("/v1/mcp", headers=sent).status_code == 204
        assert all(each["method"] == UPDATED for each in heard), "and the stream ends"


def test_a_client_of_the_newest_revision_hears_of_changes(
    clients: list[httpx.Client], subject: tuple[str, str, str]
) -> None:
    key, address, tool = subject
    meta = {f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": {}}
    wanted = {"resourceSubscriptions": [address, "absent+test://x"]}
    body = {
        "jsonrpc": "2.0",
        "id": 5,
        "method": "subscriptions/listen",
        "params": {"_meta": meta, "notifications": wanted},
    }
    sent = {
        "Authorization": f"Bearer {key}",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": "subscriptions/listen",
    }
    with clients[1].stream("POST", "/v1/mcp", json=body, headers=sent) as stream:
        heard = messages(stream)
        own = {f"{META}subscriptionId": 5}
        begun = next(heard)["params"]
        assert begun == {"_meta": own, "notifications": {"resourceSubscriptions": [address]}}
        agent.result(agent.call(clients[1], key, tool))
        assert next(heard) == {"jsonrpc": "2.0", "method": UPDATED, "params": {"_meta": own, "uri": address}}
