"""The monitor against vendors on real sockets: one POST each, no credentials, bounded and shared."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from gateway.catalog.vendor import Vendor
from gateway.coordination import backend
from gateway.coordination.sqlite_store import SQLiteStore
from proxy import tasks
from proxy.control_plane.health import monitor, selectors, state_cache
from proxy.control_plane.health.monitor import run_round
from proxy.control_plane.health.states import HealthStatus, VendorHealth
from tests.factories.cast import Cast
from tests.factories.tenant import connect, load_vendor
from tests.fakes.vendor import FakeVendor, running_vendor


@pytest.fixture
def shared(tmp_path: Path) -> SQLiteStore:
    """A store of the test's own."""
    return SQLiteStore(tmp_path / "health.sqlite3", backend.new_value)


@pytest.fixture
async def open_vendor() -> AsyncIterator[FakeVendor]:
    """A vendor that needs no key."""
    async with running_vendor(api_key=None) as running:
        yield running


JSON = "application/json"


@asynccontextmanager
async def answering(answer: dict[str, Any]) -> AsyncIterator[str]:
    """The address of something that answers everything so."""

    async def handle(request: web.Request) -> web.Response:
        return web.Response(**answer)

    app = web.Application()
    app.router.add_route("*", "/mcp", handle)
    async with TestServer(app) as server:
        yield str(server.make_url("/mcp"))


def vendor_at(url: str, slug: str = "fake") -> Vendor:
    return Vendor(slug=slug, name=slug.title(), url=url, tool_prefix=slug)


async def one_round(shared: SQLiteStore, *vendors: Vendor) -> dict[str, VendorHealth]:
    return await run_round(shared, vendors, jitter_s=0)


async def test_a_vendor_that_answers_is_healthy_and_says_its_version(
    shared: SQLiteStore, open_vendor: FakeVendor
) -> None:
    found = await one_round(shared, vendor_at(open_vendor.url))
    assert (found["fake"].status, found["fake"].version, found["fake"].error_detail) == ("healthy", "1", None)
    assert open_vendor.seen == {"initialize": 1}
    assert "X-Api-Key" not in open_vendor.headers
    assert open_vendor.deleted == ["session-1"]  # nothing is left behind
    assert state_cache.read(shared, ["fake", "other"])["fake"].status is HealthStatus.HEALTHY
    assert state_cache.read(shared, ["fake", "other"])["other"].status is HealthStatus.UNKNOWN


async def test_a_vendor_that_wants_credentials_is_reachable(shared: SQLiteStore) -> None:
    async with running_vendor() as closed:
        found = await one_round(shared, vendor_at(closed.url))
    assert (found["fake"].status, found["fake"].error_detail) == ("reachable", None)


@pytest.mark.parametrize(
    ("answer", "remark"),
    [
        ({"status": 404, "text": "no"}, "answered initialize with HTTP 404; tool calls may fail"),
        (
            {"status": 200, "text": "<p>hello"},
            "answered initialize with something that is not MCP; tool calls may fail",
        ),
        (
            {"text": '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}', "content_type": JSON},
            "answered initialize with error -32601; tool calls may fail",
        ),
        ({"text": '{"jsonrpc":"2.0","id":1,"result":{}}', "content_type": JSON}, ""),
        ({"status": 401}, ""),
    ],
    ids=["404", "a page", "an error", "a result", "401"],
)
async def test_nothing_is_claimed_of_a_vendor_that_was_not_seen(
    shared: SQLiteStore, answer: dict[str, Any], remark: str
) -> None:
    async with answering(answer) as url:
        found = (await one_round(shared, vendor_at(url)))["fake"]
    assert found.remark == remark
    assert found.error_detail is None
    assert state_cache.read(shared, ["fake"])["fake"].remark == remark


async def test_a_vendor_that_is_gone_degrades_and_goes_down_without_its_address(shared: SQLiteStore) -> None:
    statuses = [(await one_round(shared, vendor_at("http://127.0.0.1:9/mcp")))["fake"] for _ in range(3)]
    assert [state.status.value for state in statuses] == ["degraded", "degraded", "down"]
    assert statuses[2].error_detail == "could not be reached, 3 failures in a row"


async def test_a_silent_vendor_does_not_hold_up_the_round(
    shared: SQLiteStore, open_vendor: FakeVendor, settings: Any
) -> None:
    settings.HEALTH_PROBE_DEADLINE_S = 2.0
    async with running_vendor(api_key=None, hang_s=60.0) as silent:
        found = await one_round(shared, vendor_at(silent.url, "silent"), vendor_at(open_vendor.url))
    assert found["silent"].error_detail == "timed out after 2 s, 1 failure"
    assert found["fake"].status is HealthStatus.HEALTHY


async def test_a_round_spreads_its_probes_and_leaves_gaps_of_chance(
    shared: SQLiteStore, open_vendor: FakeVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each probe waits for a time of its own, drawn anew in each round, before it takes a place. Spec: D131"""
    pauses: list[float] = []

    async def recording(pause_s: float) -> None:
        pauses.append(pause_s)

    monkeypatch.setattr(monitor, "asyncio", SimpleNamespace(**{**vars(asyncio), "sleep": recording}))
    vendors = [vendor_at(open_vendor.url, f"vendor-{number}") for number in range(20)]
    for _ in range(2):
        assert len(await run_round(shared, vendors)) == 20
    assert len(set(pauses)) == 40
    assert all(0 <= pause_s <= monitor.JITTER_S for pause_s in pauses)
    assert max(pauses) - min(pauses) > monitor.JITTER_S / 2
    assert monitor.JITTER_S >= 1.0


async def test_customer_supplied_addresses_are_never_probed(shared: SQLiteStore, open_vendor: FakeVendor) -> None:
    assert await one_round(shared, vendor_at(open_vendor.url.replace("127.0.0.1", "{host}"))) == {}
    assert sum(open_vendor.seen.values()) == 0


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[list[str]]]:
    """The rounds that the task started, by the vendors they looked at."""
    rounds: list[list[str]] = []

    async def fake_round(shared: object, vendors: list[Vendor]) -> dict[str, VendorHealth]:
        rounds.append([vendor.slug for vendor in vendors])
        return {}

    monkeypatch.setattr(tasks, "run_round", fake_round)
    return rounds


def test_one_scheduler_leads_an_interval_and_only_vendors_in_use_are_probed(
    cast: Cast, counted: list[list[str]], shared: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend, "current", lambda: shared)
    load_vendor("http://127.0.0.1:9/mcp")
    load_vendor("http://127.0.0.1:9/mcp", slug="unused")
    connect(cast.org, cast.user("owner"))
    tasks.probe_vendors()
    tasks.probe_vendors()
    assert counted == [["fake"]]


def test_an_organization_sees_the_vendors_it_connected(
    cast: Cast, shared: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend, "current", lambda: shared)
    load_vendor("http://127.0.0.1:9/mcp")
    connect(cast.org, cast.user("owner"))
    (entry,) = selectors.vendor_health(cast.org)
    assert (entry.vendor_slug, entry.status, entry.label, entry.last_checked) == ("fake", "unknown", "Checking…", None)
    assert selectors.vendor_health(cast.other_org) == []


async def test_a_short_interval_is_not_stretched_by_jitter(
    shared: SQLiteStore, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []

    def spread(low: float, high: float) -> float:
        asked.append(high)
        return 0.0

    monkeypatch.setattr(monitor.random, "uniform", spread)
    for interval_s in (1, 60):
        settings.HEALTH_PROBE_INTERVAL_S = interval_s
        await run_round(shared, [vendor_at("http://127.0.0.1:9/mcp")])
    assert asked == [0.1, 2.0]
