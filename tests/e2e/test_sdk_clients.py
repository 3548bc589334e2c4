"""The official MCP SDK and plain scripts against the gateway as a process, with vendors that others have written."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import AsyncIterator

import httpx
import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

from tests.e2e import agent
from tests.e2e.agent import ServiceClient
from tests.e2e.shared_gateway import Gateway
from tests.vendors.processes import PLAIN_HTTP, RunningServer

pytest_plugins = ("tests.vendors.fixtures", "tests.e2e.fixtures")

TIMING_HEADERS = ("X-Auth-Ms", "X-Session-Ms", "X-Vendor-Ms", "X-Total-Ms")


@pytest.fixture(scope="module")
def service_client(gateway: Gateway) -> ServiceClient:
    """A service client of an organization that is connected to every vendor."""
    return gateway.new_service_client()


@pytest.fixture(params=["agent key", "JWT"])
def token(request: pytest.FixtureRequest, gateway: Gateway, service_client: ServiceClient) -> str:
    """Both kinds of bearer that open the unified endpoint."""
    return service_client.agent_key if request.param == "agent key" else fresh_jwt(gateway, service_client)


def fresh_jwt(gateway: Gateway, service_client: ServiceClient) -> str:
    """An access token of the service client."""
    with gateway.web.client() as client:
        return agent.access_token(client, service_client)


class Wire:
    """The methods and statuses that went over the wire."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, int]] = []

    async def note(self, response: httpx2.Response) -> None:
        """Called for every answer."""
        body = json.loads(response.request.content) if response.request.content else {}
        self.seen.append((body.get("method", response.request.method), response.status_code))


@contextlib.asynccontextmanager
async def sdk_client(
    gateway: Gateway, token: str, wire: Wire | None = None, mode: str = "auto"
) -> AsyncIterator[Client]:
    """The SDK's client; its default mode asks for the newest protocol first."""
    hooks = {"response": [wire.note]} if wire else {}
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=30.0, event_hooks=hooks, **PLAIN_HTTP) as http:
        transport = streamable_http_client(gateway.web.mcp_url, http_client=http)
        async with Client(transport, mode=mode) as client:
            yield client


def text_of(result: CallToolResult) -> str:
    """All its text."""
    return "\n".join(part.text for part in result.content if isinstance(part, TextContent))


@pytest.mark.parametrize(
    ("mode", "version", "methods"),
    [
        ("auto", "2026-07-28", ["server/discover", "tools/list"]),
        ("legacy", "2025-11-25", ["initialize", "notifications/initialized", "tools/list"]),
    ],
)
async def test_how_the_sdk_begins(gateway: Gateway, token: str, mode: str, version: str, methods: list[str]) -> None:
    wire = Wire()
    async with sdk_client(gateway, token, wire, mode) as client:
        assert client.protocol_version == version
        assert client.server_capabilities.tools is not None
        resources = client.server_capabilities.resources
        # A vendor may have some. A client that declares nothing has no session, and so no stream that tells of changes.
        assert resources is None or resources.list_changed is (version == "2026-07-28")
        assert client.server_info is not None
        assert client.server_info.icons
        assert client.instructions is not None
        assert "Acme RMM" in client.instructions
        await client.list_tools()  # the notification is sent behind the client's back, but before this
    expected = [(method, 202 if method.startswith("notifications/") else 200) for method in methods]
    assert wire.seen[0] == expected[0]
    assert sorted(wire.seen) == sorted(expected)


async def test_tools_of_every_vendor_are_listed_under_their_prefixes(
    gateway: Gateway, token: str, everything: RunningServer | None
) -> None:
    async with sdk_client(gateway, token) as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert {"acme_whoami", "acme_create_ticket", "acme_fail"} <= set(listed)
    assert {"time_get_current_time", "time_convert_time"} <= set(listed)
    assert {name.partition("_")[0] for name in listed} == set(gateway.vendors)
    devices = listed["acme_list_devices"]
    assert devices.annotations is not None
    assert devices.annotations.read_only_hint is True
    assert devices.output_schema is not None
    if everything is None:
        assert shutil.which("node") is None, "there is Node.js, so server-everything has to be tested"
        assert not any(name.startswith("everything_") for name in listed)
    else:
        assert {"everything_echo", "everything_get-sum"} <= set(listed)


async def test_results_of_the_demo_vendor_arrive_as_they_were_sent(gateway: Gateway, token: str) -> None:
    async with sdk_client(gateway, token) as client:
        await client.list_tools()  # the SDK checks structured content against the schemas it has listed
        found = await client.call_tool("acme_get_device", {"device_id": "dev-007"})
        assert not found.is_error
        assert found.structured_content is not None
        assert found.structured_content["id"] == "dev-007"
        assert json.loads(text_of(found)) == found.structured_content
        failed = await client.call_tool("acme_fail", {"reason": "the répört is späte"})
        assert failed.is_error
        assert text_of(failed) == "the répört is späte"
        refused = await client.call_tool("acme_get_device", {"device_id": "dev-999"})
        assert refused.is_error
        assert "dev-999" in text_of(refused)


async def test_a_writing_tool_writes_once(gateway: Gateway, service_client: ServiceClient, token: str) -> None:
    arguments = {"subject": "Printer is on fire", "requester": {"name": "Ana", "email": "ana@example.com"}}
    async with sdk_client(gateway, token) as client:
        before = (await client.call_tool("acme_whoami")).structured_content
        made = await client.call_tool("acme_create_ticket", arguments)
        after = (await client.call_tool("acme_whoami")).structured_content
    assert before is not None
    assert after is not None
    assert made.structured_content is not None
    assert made.structured_content["requester"] == arguments["requester"]
    assert after["tickets"] == before["tickets"] + 1
    assert after["key_fingerprint"] == before["key_fingerprint"]


async def test_a_tool_of_the_time_server(gateway: Gateway, token: str) -> None:
    async with sdk_client(gateway, token) as client:
        found = await client.call_tool("time_get_current_time", {"timezone": "Europe/Berlin"})
        wrong = await client.call_tool("time_get_current_time", {"timezone": "Nowhere/Atlantis"})
    assert json.loads(text_of(found))["timezone"] == "Europe/Berlin"
    assert wrong.is_error
    assert "Nowhere/Atlantis" in text_of(wrong)


async def test_tools_of_server_everything(gateway: Gateway, token: str, everything: RunningServer | None) -> None:
    if everything is None:
        assert shutil.which("node") is None, "there is Node.js, so server-everything has to be tested"
        async with sdk_client(gateway, token) as client:
            with pytest.raises(MCPError, match="Unknown tool"):
                await client.call_tool("everything_echo", {"message": "without Node.js nobody is there"})
        return
    async with sdk_client(gateway, token) as client:
        await client.list_tools()
        echoed = await client.call_tool("everything_echo", {"message": "grüße"})
        summed = await client.call_tool("everything_get-sum", {"a": 2, "b": 40})
        weather = await client.call_tool("everything_get-structured-content", {"location": "Chicago"})
        slow = await client.call_tool("everything_trigger-long-running-operation", {"duration": 0.4, "steps": 2})
        image = await client.call_tool("everything_get-tiny-image")
        wrong = await client.call_tool("everything_get-sum", {"a": "two"})
    assert "grüße" in text_of(echoed)
    assert "42" in text_of(summed)
    assert weather.structured_content is not None
    assert {"temperature", "conditions", "humidity"} <= set(weather.structured_content)
    assert not slow.is_error
    assert [part.type for part in image.content].count("image") == 1
    assert wrong.is_error


async def test_what_the_sdk_gets_when_it_may_not(gateway: Gateway, service_client: ServiceClient) -> None:
    async with sdk_client(gateway, service_client.agent_key) as client:
        with pytest.raises(MCPError, match="Unknown tool: acme_no_such_tool"):
            await client.call_tool("acme_no_such_tool")
        with pytest.raises(MCPError, match="Unknown tool: nobody_at_all"):
            await client.call_tool("nobody_at_all")
    unconnected = gateway.new_service_client(fields={})
    async with sdk_client(gateway, unconnected.agent_key) as client:
        assert (await client.list_tools()).tools == []
        refused = await client.call_tool("acme_whoami")
    assert refused.is_error
    assert "not connected" in text_of(refused)


async def test_a_wrong_key_ends_in_the_handshake(gateway: Gateway, service_client: ServiceClient) -> None:
    wire = Wire()
    wrong = service_client.agent_key[:-4] + "AAAA"
    with pytest.RaisesGroup(MCPError, flatten_subgroups=True, allow_unwrapped=True):
        async with sdk_client(gateway, wrong, wire):
            pytest.fail("a wrong key has opened a session")
    assert {status for _, status in wire.seen} == {401}


def timings(answer: httpx.Response) -> dict[str, int]:
    """The four timing headers, which every answer carries."""
    return {name: int(answer.headers[name]) for name in TIMING_HEADERS}


def test_the_same_tools_in_plain_json(
    gateway: Gateway, service_client: ServiceClient, everything: RunningServer | None
) -> None:
    token = fresh_jwt(gateway, service_client)
    calls = {
        "acme": ("get-device", {"device_id": "dev-007"}, "dev-007"),
        "time": ("time_get_current_time", {"timezone": "Europe/Berlin"}, "Europe/Berlin"),
    }
    if everything is None:
        assert shutil.which("node") is None, "there is Node.js, so server-everything has to be tested"
    else:
        calls["everything"] = ("echo", {"message": "grüße"}, "grüße")
    with gateway.web.client() as client:
        for vendor, (tool, arguments, expected) in calls.items():
            answer = agent.cli(client, token, vendor, tool, **arguments)
            assert answer.status_code == 200, answer.text
            (content,) = answer.json()["result"]["content"]
            assert content["type"] == "text"
            assert expected in content["text"]
            spent = timings(answer)
            assert spent["X-Vendor-Ms"] <= spent["X-Total-Ms"]
        failed = agent.cli(client, token, "acme", "fail", reason="on fire")
        assert (failed.status_code, failed.json()) == (422, {"error": "on fire"})
        by_key = agent.cli(client, service_client.agent_key, "acme", "whoami")
        assert by_key.status_code == 401
        assert list(by_key.json()) == ["error"]
        missing = agent.cli(client, token, "acme", "no-such-tool")
        assert missing.status_code == 403
        for answer in (failed, by_key, missing):
            timings(answer)


def test_the_flat_command_list(gateway: Gateway, service_client: ServiceClient) -> None:
    headers = {"Authorization": f"Bearer {fresh_jwt(gateway, service_client)}"}
    with gateway.web.client() as client:
        answer = client.get("/v1/acme/cli/schema", headers=headers)
        of_time = client.get("/v1/time/cli/schema", headers=headers)
        unknown = client.get("/v1/nobody/cli/schema", headers=headers)
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert (body["vendor"], body["vendorName"]) == ("acme", "Acme RMM")
    commands = {command["command"]: command for command in body["commands"]}
    assert {"list-devices", "get-device", "create-ticket", "whoami"} <= set(commands)
    flags = {flag["name"]: flag for flag in commands["create-ticket"]["flags"]}
    assert flags["subject"]["required"] is True
    assert flags["requester.email"]["required"] is True, "nested fields are flags of their own"
    timings(answer)
    assert [command["command"] for command in of_time.json()["commands"]] == ["convert-time", "get-current-time"]
    assert unknown.status_code == 403
