"""Progress as the official SDK's callback sees it: while the tool of a real vendor runs, and in order."""

from __future__ import annotations

import asyncio
import time

import pytest

from tests.e2e.agent import ServiceClient, bearer
from tests.e2e.shared_gateway import Gateway
from tests.e2e.test_sdk_clients import sdk_client
from tests.vendors.servers import DemoVendor

pytest_plugins = ("tests.vendors.fixtures", "tests.e2e.fixtures")

SECONDS = 2.0


@pytest.fixture(scope="module")
def service_client(gateway: Gateway) -> ServiceClient:
    """A service client of an organization that is connected to every vendor."""
    return gateway.new_service_client()


class Watcher:
    """A progress callback that keeps its arguments and their times."""

    def __init__(self) -> None:
        self.seen: list[tuple[float, float, float | None, str | None]] = []

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        self.seen.append((time.monotonic(), progress, total, message))


async def report(gateway: Gateway, service_client: ServiceClient, kind: str, watcher: Watcher) -> object:
    """Run the slow tool; returns its structured content."""
    async with sdk_client(gateway, service_client.agent_key) as client:
        arguments = {"kind": kind, "seconds": SECONDS}
        found = await client.call_tool("acme_run_report", arguments, progress_callback=watcher)
    assert not found.is_error
    return found.structured_content


async def test_progress_is_seen_while_the_tool_runs(gateway: Gateway, service_client: ServiceClient) -> None:
    watcher = Watcher()
    content = await report(gateway, service_client, "inventory", watcher)
    ended_s = time.monotonic()
    assert isinstance(content, dict)
    assert content["kind"] == "inventory"
    values = [progress for _, progress, _, _ in watcher.seen]
    assert len(values) >= 3
    assert values == sorted(set(values))
    assert {total for _, _, total, _ in watcher.seen} == {values[-1]}
    assert watcher.seen[-1][3] == "done"
    first_s, last_s = watcher.seen[0][0], watcher.seen[-1][0]
    assert ended_s - first_s > SECONDS / 2, "the first report came well before the end"
    assert last_s - first_s > SECONDS / 2, "the reports came apart, and not all at once"


async def test_two_clients_at_once_see_their_own_reports_only(gateway: Gateway, service_client: ServiceClient) -> None:
    watchers = [Watcher(), Watcher()]
    kinds = ["inventory", "availability"]
    contents = await asyncio.gather(
        *(report(gateway, service_client, kind, watcher) for kind, watcher in zip(kinds, watchers, strict=True))
    )
    assert [content["kind"] for content in contents if isinstance(content, dict)] == kinds
    for watcher in watchers:
        values = [progress for _, progress, _, _ in watcher.seen]
        assert len(values) >= 3
        assert values == sorted(set(values)), "each report once, in order: none of the other client's"


def test_a_client_that_leaves_ends_the_call_at_the_vendor(
    gateway: Gateway, service_client: ServiceClient, demo_vendor: DemoVendor
) -> None:
    def cancelled() -> int:
        return int(demo_vendor.stats()["methods"].get("(broken off)", 0))

    before = cancelled()
    params = {"name": "acme_run_report", "arguments": {"kind": "inventory", "seconds": 10}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {**params, "_meta": {"progressToken": "t"}}}
    sent = bearer(service_client.agent_key)
    with gateway.web.client() as client, client.stream("POST", "/v1/mcp", json=body, headers=sent) as answer:
        assert answer.headers["Content-Type"] == "text/event-stream"
        first = next(line for line in answer.iter_lines() if line.startswith("data:"))
        assert '"progressToken":"t"' in first
    left_s = time.monotonic()
    while cancelled() == before and time.monotonic() - left_s < 20:
        time.sleep(0.05)
    assert cancelled() == before + 1
