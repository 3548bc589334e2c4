"""The newest SDK clients in one protocol version each: what they do, and with how many requests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mcp import MCPError

from tests.clients import programs
from tests.e2e.agent import ServiceClient
from tests.e2e.shared_gateway import Gateway
from tests.e2e.test_sdk_clients import Wire, sdk_client, text_of

pytest_plugins = ("tests.vendors.fixtures", "tests.e2e.fixtures")

MODERN = "2026-07-28"
EARLIER = "2025-11-25"
HANDSHAKE = ["initialize", "notifications/initialized"]
OPERATIONS = ["tools/list", *["tools/call"] * 4]


@pytest.fixture(scope="module")
def service_client(gateway: Gateway) -> ServiceClient:
    """A service client of an organization that is connected to every vendor."""
    return gateway.new_service_client()


@pytest.mark.parametrize(
    ("mode", "version", "before"),
    [(MODERN, MODERN, []), ("auto", MODERN, ["server/discover"]), ("legacy", EARLIER, HANDSHAKE)],
)
async def test_the_python_sdk_sends_one_request_for_each_operation(
    gateway: Gateway, service_client: ServiceClient, mode: str, version: str, before: list[str]
) -> None:
    wire, reports = Wire(), []

    async def report(progress: float, total: float | None, message: str | None) -> None:
        reports.append(progress)

    async with sdk_client(gateway, service_client.agent_key, wire, mode) as client:
        assert client.protocol_version == version
        listed = await client.list_tools()
        assert "acme_whoami" in [tool.name for tool in listed.tools]
        who = await client.call_tool("acme_whoami")
        assert who.structured_content is not None
        failed = await client.call_tool("acme_fail", {"reason": "späte Mühe"})
        assert (failed.is_error, text_of(failed)) == (True, "späte Mühe")
        arguments = {"kind": "inventory", "seconds": 0.2}
        slow = await client.call_tool("acme_run_report", arguments, progress_callback=report)
        assert slow.structured_content is not None
        with pytest.raises(MCPError, match="Unknown tool: acme_no_such_tool"):
            await client.call_tool("acme_no_such_tool")
    assert reports == sorted(reports)
    assert reports
    methods = [method for method, _ in wire.seen]
    if HANDSHAKE[1] in methods:  # sent behind the client's back
        methods.remove(HANDSHAKE[1])
    assert methods == [*(method for method in before if method != HANDSHAKE[1]), *OPERATIONS]
    assert {status for _, status in wire.seen} <= {200, 202}


async def test_a_subscription_of_the_python_sdk_begins_and_ends_in_good_order(
    gateway: Gateway, service_client: ServiceClient
) -> None:
    async with (
        sdk_client(gateway, service_client.agent_key, mode=MODERN) as client,
        client.listen(tools_list_changed=True, resource_subscriptions=["a:b"]) as heard,
    ):
        assert heard.honored.tools_list_changed is True
        assert not heard.honored.resource_subscriptions
        await client.list_tools()


@pytest.mark.parametrize(("version", "before"), [(MODERN, ["server/discover"]), (EARLIER, HANDSHAKE)])
def test_the_typescript_client_sends_one_request_for_each_operation(
    gateway: Gateway, service_client: ServiceClient, tmp_path: Path, version: str, before: list[str]
) -> None:
    node = programs.node()
    if node is None:
        programs.skip_without_node()
    variables = programs.environment(tmp_path, "nobody@example.com", {"MCP_BEARER": service_client.agent_key})
    command = (node, str(programs.NODE_PROGRAMS / "counted_client.mjs"), gateway.web.mcp_url, version)
    seen: dict[str, Any] = programs.run(command, variables).report()
    methods = [method for method, _, _ in seen["sent"] if method != "GET"]
    assert methods == [*before, *OPERATIONS]
    assert {"acme_whoami", "acme_create_ticket"} <= set(seen["tools"])
    assert seen["called"]["key_fingerprint"]
    assert seen["failed"] == [True, "späte Mühe"]
    assert (seen["slow"], seen["unknown"]) == ("inventory", -32602)
    assert seen["reports"] > 0
    assert seen["server"] == "mcp-gateway"
    assert "Acme RMM" in seen["instructions"]
