"""The fault matrix: a vendor misbehaves in each known way, and both routes answer in the documented words, in time,
within bounds, with a row; what is no fault of the way to it opens no circuit, and the next call works.

Spec: §4.14, §4.15, §7 · D100, D105 · docs/decisions/0008
"""

from __future__ import annotations

import asyncio
import gc
import json
import socket
import time
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from django.conf import LazySettings

from audit.models import RequestAuditEntry
from gateway.catalog import registry as catalog
from gateway.coordination import registry as coordination
from proxy import runtime
from proxy.health.probe import probe
from proxy.health.states import UNKNOWN, HealthStatus, after_probe
from proxy.vendors import circuit_board
from proxy.vendors.transport import Limits, VendorTransport
from tests.api.proxy.conftest import Agent
from tests.factories.cast import Cast
from tests.factories.tenant import Tenant, connect, load_vendor, make_tenant
from tests.factories.threads import in_thread
from tests.fakes.hostile_vendor import FAULTS, MIB, HostileVendor, hostile_vendor

UNAVAILABLE, TIMEOUT, BAD, REJECTED = (
    "vendor_unavailable",
    "vendor_timeout",
    "bad_vendor_response",
    "vendor_rejected_credentials",
)
PATIENCE_S = 60.0  # each fault would last for ever
TIMEOUT_S = 1  # of the vendor, where it is to be met


@dataclass(frozen=True)
class Row:
    """`circuit`: whose is touched: nobody's, the credential's, the vendor's. `probe`: what the monitor makes of it."""

    reason: str
    circuit: str = ""
    probe: HealthStatus = HealthStatus.DEGRADED
    retry_after_s: int | None = None


ANSWERED = HealthStatus.HEALTHY
ROWS = {
    "closes_at_once": Row(UNAVAILABLE, "credential"),
    "resets": Row(UNAVAILABLE, "credential"),
    "never_answers": Row(TIMEOUT, "credential"),
    "half_a_head": Row(TIMEOUT, "credential"),
    "half_a_body": Row(TIMEOUT),
    "dies_in_the_body": Row(BAD),
    "drips": Row(TIMEOUT),
    "only_comments": Row(TIMEOUT),
    "a_stream_that_says_nothing": Row(TIMEOUT),
    "a_stream_that_ends": Row(BAD, probe=ANSWERED),
    "interim_answers_for_ever": Row(BAD),
    "no_http": Row(BAD),
    "html": Row(BAD, probe=ANSWERED),
    "a_picture": Row(BAD, probe=ANSWERED),
    "broken_json": Row(BAD, probe=ANSWERED),
    "nothing_at_all": Row(BAD, probe=ANSWERED),
    "no_content": Row(BAD, probe=ANSWERED),
    "another_json_rpc": Row(BAD, probe=ANSWERED),
    "a_wrong_id": Row(BAD, probe=ANSWERED),
    "an_id_of_another_type": Row(BAD, probe=ANSWERED),
    "an_error_for_nobody": Row(BAD, probe=ANSWERED),
    "a_result_that_is_a_list": Row(BAD, probe=ANSWERED),
    "neither_result_nor_error": Row(BAD, probe=ANSWERED),
    "a_batch": Row(BAD, probe=ANSWERED),
    "no_utf_8": Row(BAD, probe=ANSWERED),
    "deep_json": Row(BAD, probe=ANSWERED),
    "two_lengths": Row(BAD),
    "another_coding": Row(BAD),
    "half_a_gzip": Row(BAD),
    "a_huge_length": Row(BAD),
    "an_endless_body": Row(BAD),
    "a_gzip_bomb": Row(BAD),
    "an_endless_event": Row(BAD),
    "a_flood_of_events": Row(BAD),
    "a_flood_of_empty_lines": Row(BAD),
    "tiny_chunks": Row(BAD),
    "endless_headers": Row(BAD),
    "says_401": Row(REJECTED, probe=HealthStatus.REACHABLE),
    "says_403": Row(REJECTED, probe=HealthStatus.REACHABLE),
    "says_429": Row(UNAVAILABLE, probe=ANSWERED, retry_after_s=7),
    "says_429_until_a_date": Row(UNAVAILABLE, probe=ANSWERED),
    "says_500": Row(UNAVAILABLE),
    "says_503": Row(UNAVAILABLE),
    "says_418": Row(BAD, probe=ANSWERED),
    "redirects": Row(BAD, probe=ANSWERED),
    "says_101": Row(BAD),
    "says_600": Row(BAD),
}
ODD_BUT_GOOD = ("answers_twice", "answers_others_first", "asks_first", "plain_text")
LARGE = ("an_endless_body", "a_gzip_bomb", "an_endless_event", "tiny_chunks")


@pytest.fixture(autouse=True)
def _short_deadlines(settings: LazySettings) -> None:
    settings.VENDOR_CONNECT_TIMEOUT_S = 0.3
    settings.VENDOR_CHUNK_TIMEOUT_S = 0.3
    settings.VENDOR_REPLY_BYTES = MIB


@pytest.fixture
async def hostile() -> AsyncIterator[HostileVendor]:
    async with hostile_vendor() as running:
        yield running
    circuit_board.post(coordination.current(), circuit_board.vendor_wide("fake"), None)


@pytest.fixture
def tenant(hostile: HostileVendor, committed_cast: Cast) -> Tenant:
    """An organization that is connected to the hostile vendor."""
    load_vendor(hostile.url, timeout_s=30)
    connect(committed_cast.org, committed_cast.user("owner"))
    return make_tenant(committed_cast.org, committed_cast.user("owner"))


async def rows() -> list[RequestAuditEntry]:
    return await in_thread(lambda: list(RequestAuditEntry.objects.order_by("source")))


async def both(
    agent: Agent, tenant: Tenant, jwt: str, tool: str = "fake_write"
) -> tuple[httpx.Response, httpx.Response]:
    """The same call over both routes at once."""
    async with asyncio.timeout(PATIENCE_S):
        mcp, cli = await asyncio.gather(agent.call(tenant.agent_key, tool), agent.cli(jwt, tool))
    return mcp, cli


async def warm(agent: Agent, tenant: Tenant, jwt: str) -> None:
    """The session is open and the tools are known; the log is empty again."""
    for answer in await both(agent, tenant, jwt):
        assert answer.status_code == 200
    await in_thread(lambda: RequestAuditEntry.objects.all().delete())


def troubled_circuits() -> set[str]:
    """Which kinds of circuits are not as new."""
    found = runtime.current().pool.circuits._circuits
    return {"credential" if ":" in name else "vendor" for name in found}


async def nothing_is_held(of: Tenant) -> None:
    """Every connection is free or closed, and every place given back."""
    live = runtime.current()
    async with asyncio.timeout(PATIENCE_S):
        while any(connections._busy for connections in live.transport._by_origin.values()):
            await asyncio.sleep(0.01)
    assert all(each.is_unused for each in live.pool.bulkhead._compartments.values())


def assert_refused(mcp: httpx.Response, cli: httpx.Response, row: Row) -> None:
    assert mcp.status_code == 200
    error = mcp.json()["error"]
    expected: dict[str, Any] = {"vendor": "fake", "reason": row.reason}
    if row.retry_after_s is not None:
        expected["retryAfter"] = row.retry_after_s
    assert (error["code"], error["data"]) == (-32603, expected)
    assert cli.status_code == 502
    assert list(cli.json()) == ["error"]
    assert cli.json()["error"] == ("vendor rejected credentials" if row.reason == REJECTED else error["message"])
    assert cli.headers.get("Retry-After") == (None if row.retry_after_s is None else str(row.retry_after_s))
    for answer in (mcp, cli):
        assert len(answer.content) < 400
        assert not any(word in answer.text for word in ("secret", "script", "127.0.0.1", "Traceback", "maintenance"))
        assert "WWW-Authenticate" not in answer.headers
        assert "Location" not in answer.headers


def test_every_fault_has_its_row() -> None:
    assert {*ROWS, *ODD_BUT_GOOD} == set(FAULTS)


@pytest.mark.parametrize("name", ROWS)
async def test_both_routes_say_what_is_wrong(
    agent: Agent, tenant: Tenant, jwt: str, hostile: HostileVendor, name: str
) -> None:
    row = ROWS[name]
    if row.reason == TIMEOUT:
        await in_thread(lambda: load_vendor(hostile.url, timeout_s=TIMEOUT_S))
    await warm(agent, tenant, jwt)
    hostile.fault = name
    assert_refused(*await both(agent, tenant, jwt), row)
    assert [(each.source, each.status, each.error_code, each.vendor) for each in await rows()] == [
        ("cli", "error", row.reason, "fake"),
        ("mcp", "error", row.reason, "fake"),
    ]
    assert hostile.seen["tools/call"] == 4, "nothing is sent twice"
    assert troubled_circuits() == ({row.circuit} if row.circuit else set())
    await nothing_is_held(tenant)
    hostile.fault = ""
    for answer in await both(agent, tenant, jwt):
        assert answer.status_code == 200
        assert "fine" in answer.text
    assert troubled_circuits() == set()


@pytest.mark.parametrize("name", ODD_BUT_GOOD)
async def test_what_is_odd_is_no_fault(
    agent: Agent, tenant: Tenant, jwt: str, hostile: HostileVendor, name: str
) -> None:
    await warm(agent, tenant, jwt)
    hostile.fault = name
    mcp = await agent.call(tenant.agent_key, "fake_write")
    hostile.refusals.clear()
    cli = await agent.cli(jwt, "write")
    assert mcp.json()["result"] == {"content": [{"type": "text", "text": "fine"}]}
    assert cli.json() == {"result": {"content": [{"type": "text", "text": "fine"}]}}
    assert [each.status for each in await rows()] == ["success"] * 2
    if name == "asks_first":
        told = {each["id"]: each.get("error", {}).get("code", each.get("result")) for each in hostile.refusals}
        refused = dict.fromkeys(("qroots/list", "qsampling/createMessage", "qelicitation/create"), -32601)
        assert told == {**refused, "qping": {}}


@contextmanager
def at_most(more_bytes: int) -> Iterator[None]:
    """What is allocated at once inside the block, beyond what was there before."""
    gc.collect()
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < more_bytes


@pytest.mark.parametrize("name", LARGE)
async def test_memory_is_bounded(
    agent: Agent, tenant: Tenant, jwt: str, hostile: HostileVendor, settings: LazySettings, name: str
) -> None:
    settings.VENDOR_REPLY_BYTES = 10 * MIB
    await warm(agent, tenant, jwt)
    hostile.fault = name
    with at_most(32 * MIB):
        mcp = await agent.call(tenant.agent_key, "fake_write")
    with at_most(32 * MIB):
        cli = await agent.cli(jwt, "write")
    assert_refused(mcp, cli, ROWS[name])


# --- the way to it ----------------------------------------------------------------------------------------------------


@contextmanager
def deaf_port() -> Iterator[int]:
    """A port whose line of new connections is full: connecting takes for ever."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port: int = listener.getsockname()[1]
        callers = [socket.socket() for _ in range(4)]
        try:
            for caller in callers:
                caller.setblocking(False)
                caller.connect_ex(("127.0.0.1", port))
            time.sleep(0.05)
            yield port
        finally:
            for caller in callers:
                caller.close()


@pytest.mark.parametrize(("way", "row"), [("refused", Row(UNAVAILABLE)), ("deaf", Row(TIMEOUT))])
async def test_no_connection(
    agent: Agent, tenant: Tenant, jwt: str, hostile: HostileVendor, way: str, row: Row
) -> None:
    with deaf_port() as port:
        url = f"http://127.0.0.1:{port if way == 'deaf' else 9}/mcp"
        await in_thread(lambda: load_vendor(url, timeout_s=30))
        assert_refused(*await both(agent, tenant, jwt), row)
        assert {(each.error_code, each.vendor) for each in await rows()} == {(row.reason, "fake")}
        assert troubled_circuits() == {"vendor"}
        transport = VendorTransport(allow_private=True, limits=Limits(connect_s=0.2))
        vendor = (await in_thread(catalog.load)).get("fake")
        assert vendor is not None
        health = UNKNOWN
        for expected in (HealthStatus.DEGRADED, HealthStatus.DEGRADED, HealthStatus.DOWN):
            health = after_probe(health, await probe(transport, vendor, deadline_s=0.3), latency_threshold_ms=2_000)
            assert health.status is expected
        await transport.aclose()
    await in_thread(lambda: load_vendor(hostile.url, timeout_s=30))
    for answer in await both(agent, tenant, jwt):
        assert answer.status_code == 200


# --- what the monitor makes of it -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ROWS)
async def test_the_monitor_sees_the_same_vendor(hostile: HostileVendor, name: str) -> None:
    """A vendor that answers anything over HTTP is there; one failure degrades, and never a probe that hangs."""
    hostile.fault, hostile.strikes = name, ("initialize",)
    transport = VendorTransport(allow_private=True, limits=Limits(connect_s=0.3, chunk_s=0.15, body_bytes=MIB))
    async with asyncio.timeout(PATIENCE_S):
        result = await probe(transport, _vendor(hostile.url), deadline_s=0.3 if ROWS[name].reason == TIMEOUT else 30)
    await transport.aclose()
    state = after_probe(UNKNOWN, result, latency_threshold_ms=60_000)
    assert state.status is ROWS[name].probe
    assert "127.0.0.1" not in (state.error_detail or "")
    assert "secret" not in (state.error_detail or "")


def _vendor(url: str) -> Any:
    """As much of a vendor as a probe needs."""

    class Probed:
        slug = "fake"

    Probed.url = url  # type: ignore[attr-defined]
    return Probed


# --- sessions ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["404 Not Found", "400 Bad Request"])
async def test_a_lost_session_is_opened_again_and_nobody_notices(
    agent: Agent, tenant: Tenant, jwt: str, hostile: HostileVendor, status: str
) -> None:
    for route in ("mcp", "cli"):
        await warm(agent, tenant, jwt)
        hostile.seen.clear()
        hostile.lose_sessions, hostile.lost_status = 1, status
        answer = await (agent.cli(jwt, "write") if route == "cli" else agent.call(tenant.agent_key, "fake_write"))
        assert (answer.status_code, "fine" in answer.text) == (200, True)
        assert hostile.seen == {"tools/call": 2, "initialize": 1, "notifications/initialized": 1}
        assert [each.status for each in await rows()] == ["success"]


async def test_a_vendor_that_forgets_every_session_is_asked_twice_and_no_more(
    agent: Agent, tenant: Tenant, jwt: str, hostile: HostileVendor
) -> None:
    await warm(agent, tenant, jwt)
    hostile.seen.clear()
    hostile.lose_sessions = 1_000
    assert_refused(await agent.call(tenant.agent_key, "fake_write"), await agent.cli(jwt, "write"), Row(UNAVAILABLE))
    assert hostile.seen["tools/call"] == 4
    assert troubled_circuits() == set()


# --- lists of tools ---------------------------------------------------------------------------------------------------


def _tool(name: object, **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, **more}


def _endless(params: dict[str, Any]) -> dict[str, Any]:
    number = int(params.get("cursor", 0))
    return {"tools": [_tool(f"fake_{number}")], "nextCursor": str(number + 1)}


def _deep(depth: int) -> Any:
    schema: Any = {}
    for _ in range(depth):
        schema = {"properties": {"a": schema}}
    return schema


BAD_LISTS = {
    "endless": _endless,
    "in a circle": lambda _: {"tools": [], "nextCursor": "again"},
    "too large": lambda params: {
        "tools": [_tool(f"fake_{params.get('cursor')}", description="x" * 2 * MIB)],
        "nextCursor": f"{params.get('cursor', '')}1",
    },
    "no list": lambda _: {"tools": {"fake_list": {}}},
    "nothing": lambda _: {},
    "a cursor that is no text": lambda _: {"tools": [], "nextCursor": 7},
}


@pytest.mark.parametrize("name", BAD_LISTS)
async def test_a_list_that_cannot_be_used(
    agent: Agent, tenant: Tenant, jwt: str, hostile: HostileVendor, name: str
) -> None:
    hostile.tools = BAD_LISTS[name]
    assert_refused(*await both(agent, tenant, jwt), Row(BAD))
    assert {each.error_code for each in await rows()} == {BAD}
    assert hostile.seen["tools/list"] <= 400
    listed = (await agent.rpc(tenant.agent_key, "tools/list")).json()["result"]
    assert listed == {"tools": [], "_meta": {"gateway/unavailable": {"fake": BAD}}}
    schema = await agent.http.get("/v1/fake/cli/schema", headers={"Authorization": f"Bearer {jwt}"})
    assert (schema.status_code, list(schema.json())) == (502, ["error"])


async def test_a_list_full_of_nonsense_keeps_what_can_be_used(
    agent: Agent, tenant: Tenant, jwt: str, hostile: HostileVendor
) -> None:
    nonsense = [
        None,
        7,
        "tool",
        [],
        {},
        _tool(None),
        _tool(""),
        _tool("fake_write"),  # said twice
        _tool("x" * 100_000),
        _tool("fake_\x00\u202eevil\n"),
        _tool("fäke_ünïcode"),
        _tool("fake_schema", inputSchema="none"),
        _tool("fake_deep", inputSchema=_deep(200)),
        _tool("fake_wrong", description=7, title=[], annotations="x", outputSchema={"type": "array"}),
    ]
    hostile.tools = lambda _: {"tools": [_tool("fake_write"), *nonsense]}
    for answer in await both(agent, tenant, jwt):
        assert answer.status_code == 200
        assert "fine" in answer.text
    listed = (await agent.rpc(tenant.agent_key, "tools/list")).json()["result"]["tools"]
    names = [each["name"] for each in listed]
    assert len(names) == len(set(names)) == 5
    assert all(len(name) <= 64 and name.isascii() and name.replace("-", "_").isidentifier() for name in names)
    assert {"fake_write", "fake_wrong"} <= set(names)
    assert all(each["description"] for each in listed)
    schema = await agent.http.get("/v1/fake/cli/schema", headers={"Authorization": f"Bearer {jwt}"})
    assert len(schema.json()["commands"]) == 5


async def test_a_list_that_changes_all_the_time(
    agent: Agent, tenant: Tenant, jwt: str, hostile: HostileVendor, settings: LazySettings
) -> None:
    settings.TOOL_LIST_TTL_S = 0.0

    def other(_: object) -> dict[str, Any]:
        return {"tools": [_tool("fake_write"), _tool(f"fake_{hostile.seen['tools/list']}")]}

    hostile.tools = other
    for _ in range(5):
        for answer in await both(agent, tenant, jwt):
            assert answer.status_code == 200
        names = {each["name"] for each in (await agent.rpc(tenant.agent_key, "tools/list")).json()["result"]["tools"]}
        assert len(names) == 2
        assert "fake_write" in names


async def test_an_error_with_a_huge_text_is_cut_for_commands(
    agent: Agent, tenant: Tenant, jwt: str, hostile: HostileVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuses(asked: Any) -> None:
        error = {"code": -32000, "message": "é" * 100_000}
        await asked.say({"jsonrpc": "2.0", "id": asked.id, "error": error})

    monkeypatch.setitem(FAULTS, "refuses", refuses)
    await warm(agent, tenant, jwt)
    hostile.fault = "refuses"
    mcp, cli = await both(agent, tenant, jwt)
    assert mcp.json()["error"]["code"] == -32000, "relayed as it is"
    assert cli.status_code == 502
    assert len(cli.json()["error"].encode()) < 5 * 1024
    assert {(each.status, each.error_code) for each in await rows()} == {("error", "vendor_error")}
    assert json.loads(cli.content)["error"].startswith("The vendor answered with an error: é")
