"""How soon a report of progress is with the caller: at once, and always before the vendor has to say anything more."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import statistics
import time
from collections.abc import AsyncIterator, Iterator

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.e2e.agent import ServiceClient
from tests.e2e.shared_gateway import Gateway, keyless_catalog
from tests.e2e.test_sdk_clients import sdk_client
from tests.vendors import servers
from tests.vendors.processes import PLAIN_HTTP, RunningServer

pytest_plugins = ("tests.vendors.fixtures", "tests.e2e.fixtures")

log = logging.getLogger(__name__)
SLUG = "progress"
STEPS, PAUSE_S = 30, 0.1
MOST_ADDED_S = 0.1
MOST_LATE = 3  # of the reports of one call, more than came late without the gateway
ROUNDS = 3  # a machine with other work to do may stop any process for long, but not each time


@pytest.fixture(scope="module")
def vendor(gateway: Gateway) -> Iterator[RunningServer]:
    """A vendor that reports progress, in the gateway's catalog."""
    with servers.echo_server("sdk_2") as server:
        gateway.operator.run("load_catalog", text=keyless_catalog(SLUG, server.mcp_url))
        yield server


@pytest.fixture(scope="module")
def service_client(gateway: Gateway, vendor: RunningServer) -> ServiceClient:
    """Of an organization that is connected to the vendor."""
    return gateway.new_service_client({SLUG: {}})


@contextlib.asynccontextmanager
async def direct_client(vendor: RunningServer) -> AsyncIterator[Client]:
    """The official client at the vendor itself."""
    async with (
        httpx2.AsyncClient(timeout=30.0, **PLAIN_HTTP) as http,
        Client(streamable_http_client(vendor.mcp_url, http_client=http)) as client,
    ):
        yield client


async def delays(client: Client, tool: str) -> list[float]:
    """Seconds from the vendor's sending to the callback, for each report. One clock: the vendor is on this machine."""
    found: list[float] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        assert message is not None
        found.append(time.monotonic() - float(message))

    answer = await client.call_tool(tool, {"steps": STEPS, "pause_s": PAUSE_S}, progress_callback=note)
    assert not answer.is_error
    return found


def late(seen: list[float], usual_s: float) -> int:
    """How many reports took noticeably longer than usual."""
    return sum(delay_s - usual_s > MOST_ADDED_S for delay_s in seen)


async def test_the_gateway_adds_next_to_nothing_to_a_report(
    gateway: Gateway, service_client: ServiceClient, vendor: RunningServer
) -> None:
    """Both ways at the same time, so that what else this machine does is part of both. All reports but a few count."""
    added = []
    async with sdk_client(gateway, service_client.agent_key) as through, direct_client(vendor) as direct:
        for _ in range(ROUNDS):
            seen, seen_directly = await asyncio.gather(delays(through, f"{SLUG}_report"), delays(direct, "report"))
            assert len(seen) == len(seen_directly) == STEPS
            usual_s = statistics.median(seen_directly)
            added.append(late(seen, usual_s) - late(seen_directly, usual_s))
            numbers = (1e3 * each for each in (statistics.median(seen), max(seen), usual_s))
            log.info("median %.1f ms, worst %.1f ms; directly %.1f ms", *numbers)
            if added[-1] <= MOST_LATE:
                break
    assert min(added) <= MOST_LATE, added


async def test_every_report_arrives_while_the_vendor_waits_for_it(
    gateway: Gateway, service_client: ServiceClient, vendor: RunningServer
) -> None:
    """The vendor sends no further byte before the report is confirmed; a gateway that waits for more waits forever."""
    run, seen = secrets.token_hex(8), []
    confirmations: list[asyncio.Task[object]] = []
    async with sdk_client(gateway, service_client.agent_key) as client, direct_client(vendor) as beside:

        async def note(progress: float, total: float | None, message: str | None) -> None:
            seen.append(progress)
            sent = beside.call_tool("confirm", {"run": run, "step": int(progress)})
            confirmations.append(asyncio.create_task(sent))

        asked = client.call_tool(f"{SLUG}_report_in_step", {"run": run, "steps": 10}, progress_callback=note)
        answer = await asyncio.wait_for(asked, 60)
        await asyncio.gather(*confirmations)
    assert not answer.is_error
    assert seen == list(range(1, 11))
