"""The bounds of calls to vendors where nobody sets any, and that what serves calls is given them: not only small ones,
with which the other tests meet them quickly.

Spec: §7 · D104, D105
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from django.conf import LazySettings

from gateway.settings import limits as numbers
from proxy import runtime
from proxy.calls import vendor_request
from proxy.vendors.rpc_request import RpcRequest
from tests.api.proxy.conftest import Agent
from tests.factories.catalog_text import parse_catalog
from tests.factories.tenant import Tenant, load_vendor
from tests.factories.threads import in_thread
from tests.fakes.vendor import FakeVendor

MIB = 1024 * 1024
DEFAULTS = {
    "VENDOR_CONNECT_TIMEOUT_S": 5.0,
    "VENDOR_CHUNK_TIMEOUT_S": 10.0,
    "VENDOR_REPLY_BYTES": 10 * MIB,
    "VENDOR_SESSION_IDLE_S": 300.0,
    "VENDOR_SESSIONS": 50_000,
    "VENDOR_SESSIONS_AWAKE": 20_000,
    "VENDOR_CONNECTIONS_PER_ORIGIN": 100,
    "VENDOR_CALLS_PER_ORGANIZATION": 30,
    "VENDOR_CALLS_QUEUED": 1_000,
    "VENDOR_CALLS_WAIT_S": 5.0,
    "TOOL_LIST_TTL_S": 300.0,
    "TOOL_LIST_LONGEST_S": 3_600.0,
    "TOOL_LIST_DEADLINE_S": 8.0,
    "TOOL_LIST_MAX_PAGES": 100,
    "TOOL_INDEXES": 50_000,
    "TOOL_LIST_BYTES": 64 * MIB,
    "TOOL_LIST_BODY_BYTES": 32 * MIB,
    "DISCOVER_DEADLINE_S": 15.0,
    "MCP_BODY_BYTES": 4 * MIB,
}


@pytest.mark.parametrize("name", DEFAULTS)
def test_the_number_that_holds_when_nobody_sets_one(settings: LazySettings, name: str) -> None:
    assert getattr(numbers, name) == getattr(settings, name) == DEFAULTS[name]


def held(live: runtime.Runtime) -> dict[str, Any]:
    """The numbers that a process works with, by the setting that they come from."""
    limits, bulkhead, directory = live.transport._limits, live.pool.bulkhead, live.directory
    assert live.pool.circuits._trial_s == limits.connect_s
    return {
        "VENDOR_CONNECT_TIMEOUT_S": limits.connect_s,
        "VENDOR_CHUNK_TIMEOUT_S": limits.chunk_s,
        "VENDOR_REPLY_BYTES": limits.body_bytes,
        "VENDOR_SESSION_IDLE_S": live.pool._idle_s,
        "VENDOR_SESSIONS": live.pool._sessions._max_entries,
        "VENDOR_SESSIONS_AWAKE": live.pool._max_awake,
        "VENDOR_CONNECTIONS_PER_ORIGIN": live.transport._connections_per_origin,
        "VENDOR_CALLS_PER_ORGANIZATION": bulkhead.calls,
        "VENDOR_CALLS_QUEUED": bulkhead.max_queued,
        "VENDOR_CALLS_WAIT_S": bulkhead.wait_s,
        "TOOL_LIST_TTL_S": directory._ttl_s,
        "TOOL_LIST_LONGEST_S": directory._longest_s,
        "TOOL_LIST_MAX_PAGES": directory._max_pages,
        "TOOL_INDEXES": directory._indexes._indexes._max_entries,
        "TOOL_LIST_BYTES": directory._indexes._max_list_bytes,
        "TOOL_LIST_BODY_BYTES": live.list_bodies._kept._max_bytes,
    }


async def test_a_process_works_with_them(agent: Agent) -> None:
    found = held(runtime.current())
    assert found == {name: DEFAULTS[name] for name in found}


async def test_and_with_others_where_they_are_set(agent: Agent, settings: LazySettings) -> None:
    other = {name: number for number, name in enumerate(held(runtime.current()), start=1)}
    await runtime.stop()
    for name, value in other.items():
        setattr(settings, name, value)
    assert held(runtime.current()) == other


VENDOR = """
[[vendor]]
slug = "acme"
name = "Acme"
url = "https://acme.example/mcp"
tool_prefix = "acme"
docs_url = "https://acme.example/docs"
{more}
"""


@pytest.mark.parametrize(("more", "expected"), [("", 30), ("timeout_seconds = 7", 7)])
def test_a_vendor_has_thirty_seconds_unless_the_catalog_says_otherwise(more: str, expected: int) -> None:
    (vendor,) = parse_catalog(VENDOR.format(more=more))
    assert vendor.timeout_seconds == expected


@pytest.mark.parametrize("timeout_s", [30, 120])
async def test_a_call_has_the_seconds_of_its_vendor(
    agent: Agent, tenant: Tenant, vendor: FakeVendor, monkeypatch: pytest.MonkeyPatch, timeout_s: int
) -> None:
    """The deadline with which the call is sent, less the time since it was set."""
    await in_thread(lambda: load_vendor(vendor.url, timeout_s=timeout_s))
    left_s: list[float] = []
    original = vendor_request.send_request

    async def recording(pool: Any, destination: Any, request: RpcRequest) -> Any:
        left_s.append(request.deadline - asyncio.get_running_loop().time())
        return await original(pool, destination, request)

    monkeypatch.setattr(vendor_request, "send_request", recording)
    assert "result" in (await agent.call(tenant.agent_key, "fake_write")).json()
    (left,) = left_s
    assert timeout_s - 15 < left <= timeout_s
