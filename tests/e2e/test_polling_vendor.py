"""A vendor made with the official TypeScript SDK that closes its event streams while its tools run."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager
from urllib.parse import urlsplit

import httpx
import pytest

from tests.e2e import agent
from tests.e2e.agent import ServiceClient
from tests.e2e.shared_gateway import Gateway, keyless_catalog
from tests.e2e.test_sdk_clients import sdk_client
from tests.vendors import servers
from tests.vendors.processes import RunningServer, ServerStartError, running_server
from tests.vendors.wire_tap import WireTap, wire_tap

pytest_plugins = ("tests.vendors.fixtures", "tests.e2e.fixtures")
pytestmark = [
    pytest.mark.one_back_end,
    pytest.mark.skipif(shutil.which("node") is None, reason="a machine without Node.js goes without"),
]

STEPS = 4
PROGRAM = servers.HERE / "programs/polling_server.mjs"


def polling_server() -> AbstractContextManager[RunningServer]:
    """The vendor; its SDK comes with server-everything."""
    if not servers.EVERYTHING_ENTRY.exists():
        raise ServerStartError(f"the TypeScript SDK {servers.INSTALL_HINT}")
    return running_server("polling", lambda port: ("node", str(PROGRAM), str(port)), listens)


def listens(http: httpx.Client, origin: str) -> bool:
    """Whether it is there: a session that it does not know is none."""
    return http.delete(f"{origin}/mcp").status_code == 400


@pytest.fixture(scope="module")
def tap(gateway: Gateway) -> Iterator[WireTap]:
    """The traffic to the vendor, which is in the gateway's catalog as `polling`."""
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(polling_server())
        port = urlsplit(server.origin).port
        assert port is not None
        made = stack.enter_context(wire_tap(port))
        gateway.operator.run("load_catalog", text=keyless_catalog("polling", made.mcp_url))
        yield made


@pytest.fixture(scope="module")
def service_client(gateway: Gateway, tap: WireTap) -> ServiceClient:
    """A service client that is connected to the vendor."""
    return gateway.new_service_client({"polling": {}})


def asked(tap: WireTap) -> tuple[int, int]:
    """How many calls the vendor was sent, and how often it was asked for the rest of a stream."""
    return tap.methods()["tools/call"], tap.sent().count(b"\r\nLast-Event-ID: ")


@pytest.mark.parametrize(("waits", "resumptions"), [(True, STEPS), (False, 1)], ids=["in step", "meanwhile"])
def test_a_call_is_answered_on_both_routes(
    gateway: Gateway, service_client: ServiceClient, tap: WireTap, waits: bool, resumptions: int
) -> None:
    with gateway.web.client() as http:
        token = agent.access_token(http, service_client)
        before = asked(tap)
        found = agent.result(agent.call(http, service_client.agent_key, "polling_work", steps=STEPS, waits=waits))
        command = agent.cli(http, token, "polling", "work", steps=STEPS, waits=waits)
    assert found["content"] == [{"type": "text", "text": f"done in {STEPS} steps"}]
    assert command.status_code == 200, command.text
    assert command.json()["result"]["content"] == found["content"]
    assert asked(tap) == (before[0] + 2, before[1] + 2 * resumptions)


@pytest.mark.parametrize("waits", [True, False], ids=["in step", "meanwhile"])
async def test_progress_is_seen_once_and_in_order(
    gateway: Gateway, service_client: ServiceClient, tap: WireTap, waits: bool
) -> None:
    seen: list[tuple[float, float | None]] = []

    async def watch(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total))

    async with sdk_client(gateway, service_client.agent_key) as client:
        arguments = {"steps": STEPS, "waits": waits}
        found = await client.call_tool("polling_work", arguments, progress_callback=watch)
    assert not found.is_error
    assert seen == [(step, STEPS) for step in range(1, STEPS + 1)]


async def test_two_organizations_get_the_rest_of_their_own(
    gateway: Gateway, service_client: ServiceClient, tap: WireTap
) -> None:
    other = gateway.new_service_client({"polling": {}})
    service_clients = [service_client, other] * 3

    async def work(one: ServiceClient, steps: int) -> object:
        async with sdk_client(gateway, one.agent_key) as client:
            found = await client.call_tool("polling_work", {"steps": steps, "waits": False})
        return found.content[0]

    found = await asyncio.gather(*(work(one, steps) for steps, one in enumerate(service_clients, 1)))
    assert [getattr(each, "text", None) for each in found] == [f"done in {n} steps" for n in range(1, 7)]
