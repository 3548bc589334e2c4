"""One organization's calls and one vendor's trouble stay their own: shares of a vendor, and circuits that open.

Spec: docs/decisions/0008, 0023
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from asgiref.sync import sync_to_async
from django.conf import LazySettings

from audit.models import RequestAuditEntry
from gateway.catalog import registry as catalog
from gateway.coordination import backend as coordination
from orgs.models import Organization
from proxy import runtime
from proxy.control_plane.health.selectors import vendor_health
from proxy.vendors import shared_circuits
from proxy.vendors.circuit import FAILURES_UNTIL_OPEN, OPEN_S, CircuitState
from tests.api.proxy.conftest import Agent, access_token
from tests.api.proxy.traces import until
from tests.factories.catalog_text import load_catalog
from tests.factories.tenant import Tenant, connect, load_vendor
from tests.factories.threads import in_thread
from tests.fakes.vendor import FakeVendor

NOWHERE = "http://127.0.0.1:9/mcp"
CROWDED = "Your organization has too many calls in progress at this vendor. Try again in a moment."


@pytest.fixture(autouse=True)
async def _no_circuit_is_left(settings: LazySettings) -> AsyncIterator[None]:
    """Circuits that a test opens do not hold back the next test's calls."""
    settings.VENDOR_CALLS_PER_ORGANIZATION = 2
    settings.VENDOR_CALLS_QUEUED = 2
    settings.VENDOR_CALLS_WAIT_S = 60.0
    yield
    for vendor in ("fake", "globex"):
        await sync_to_async(shared_circuits.publish)(coordination.current(), shared_circuits.vendor_wide(vendor), None)


async def codes() -> list[tuple[str, str]]:
    return await in_thread(lambda: sorted(RequestAuditEntry.objects.values_list("status", "error_code")))


def begin(agent: Agent, bearer: str, count: int, tool: str = "fake_list") -> list[asyncio.Task[httpx.Response]]:
    return [asyncio.ensure_future(agent.call(bearer, tool)) for _ in range(count)]


async def warm(agent: Agent, vendor: FakeVendor, *tenants: Tenant) -> None:
    """The sessions are open, the log is empty, and the vendor has more time than a busy machine takes."""
    await in_thread(lambda: load_vendor(vendor.url, timeout_s=60))
    for tenant in tenants:
        assert "result" in (await agent.call(tenant.agent_key, "fake_list")).json()
    await in_thread(lambda: RequestAuditEntry.objects.all().delete())


# --- shares -----------------------------------------------------------------------------------------------------------


async def test_an_organization_cannot_take_a_vendor_from_another(
    agent: Agent, tenant: Tenant, other_tenant: Tenant, vendor: FakeVendor
) -> None:
    await in_thread(lambda: connect(other_tenant.organization, other_tenant.owner))
    await warm(agent, vendor, tenant, other_tenant)
    vendor.delay_s, before = 20, vendor.seen["tools/call"]
    greedy = begin(agent, tenant.agent_key, 4)
    await until(lambda: vendor.seen["tools/call"] == before + 2)
    await asyncio.sleep(0.05)  # the vendor has begun to wait
    vendor.delay_s = 0
    served = await asyncio.wait_for(agent.call(other_tenant.agent_key, "fake_list"), 15)
    assert "result" in served.json()
    assert not any(call.done() for call in greedy)
    assert vendor.seen["tools/call"] == before + 3, "two of the four wait for their turn"
    for call in greedy:
        call.cancel()
    await asyncio.wait(greedy)


async def test_the_queue_is_bounded_and_both_routes_say_so(
    agent: Agent, tenant: Tenant, jwt: str, vendor: FakeVendor
) -> None:
    await warm(agent, vendor, tenant)
    vendor.delay_s, before = 20, vendor.seen["tools/call"]
    waiting = begin(agent, tenant.agent_key, 4)
    await until(lambda: vendor.seen["tools/call"] == before + 2)
    await until(lambda: sum(len(one._line) for one in runtime.current().pool.bulkhead._compartments.values()) == 2)
    over_mcp = await agent.call(tenant.agent_key, "fake_list")
    error = over_mcp.json()["error"]
    assert (over_mcp.status_code, error["code"], error["message"]) == (200, -32603, CROWDED)
    assert error["data"] == {"vendor": "fake", "reason": "vendor_unavailable", "retryAfter": 1}
    over_cli = await agent.cli(jwt, "fake_write")
    assert (over_cli.status_code, over_cli.json()) == (502, {"error": CROWDED})
    assert over_cli.headers["Retry-After"] == "1"
    assert await codes() == [("error", "vendor_unavailable")] * 2
    assert not runtime.current().pool.circuits.has_trouble
    for call in waiting:
        call.cancel()
    await asyncio.wait(waiting)


async def test_waiting_ends_in_time(agent: Agent, tenant: Tenant, settings: LazySettings, vendor: FakeVendor) -> None:
    settings.VENDOR_CALLS_WAIT_S = 0.05
    await warm(agent, vendor, tenant)
    vendor.delay_s, before = 20, vendor.seen["tools/call"]
    busy = begin(agent, tenant.agent_key, 2)
    await until(lambda: vendor.seen["tools/call"] == before + 2)
    late = await asyncio.wait_for(agent.call(tenant.agent_key, "fake_list"), 15)
    assert late.json()["error"]["message"] == CROWDED
    for call in busy:
        call.cancel()
    await asyncio.wait(busy)


async def test_who_waits_is_served_and_nobody_is_lost(
    agent: Agent, tenant: Tenant, settings: LazySettings, vendor: FakeVendor
) -> None:
    settings.VENDOR_CALLS_QUEUED = 100
    await warm(agent, vendor, tenant)
    vendor.delay_s = 0.01
    answers = await asyncio.gather(*begin(agent, tenant.agent_key, 40))
    assert all("result" in answer.json() for answer in answers)
    assert await codes() == [("success", "")] * 40
    assert all(one.is_unused for one in runtime.current().pool.bulkhead._compartments.values())


async def test_vendors_behind_one_address_have_connections_of_their_own(
    agent: Agent, tenant: Tenant, vendor: FakeVendor, settings: LazySettings
) -> None:
    settings.VENDOR_CONNECTIONS_PER_ORIGIN = 4  # two for one organization
    await in_thread(lambda: load_vendor(vendor.url, slug="globex"))
    await in_thread(lambda: connect(tenant.organization, tenant.owner, "globex"))
    await warm(agent, vendor, tenant)
    assert "result" in (await agent.call(tenant.agent_key, "globex_fake_list")).json()
    vendor.delay_s, before = 20, vendor.seen["tools/call"]
    busy = begin(agent, tenant.agent_key, 2)
    await until(lambda: vendor.seen["tools/call"] == before + 2)
    vendor.delay_s = 0
    served = await asyncio.wait_for(agent.call(tenant.agent_key, "globex_fake_list"), 15)
    assert "result" in served.json()
    for call in busy:
        call.cancel()
    await asyncio.wait(busy)


# --- circuits ---------------------------------------------------------------------------------------------------------


async def move(url: str) -> None:
    await in_thread(lambda: load_vendor(url))


async def break_it(agent: Agent, tenant: Tenant) -> None:
    """Enough calls to a vendor that is gone."""
    for _ in range(FAILURES_UNTIL_OPEN):
        answer = await agent.call(tenant.agent_key, "fake_list")
        assert answer.json()["error"]["data"] == {"vendor": "fake", "reason": "vendor_unavailable"}


async def test_a_vendor_that_is_gone_is_left_alone_and_tried_again(
    agent: Agent, tenant: Tenant, jwt: str, vendor: FakeVendor
) -> None:
    await move(NOWHERE)
    await break_it(agent, tenant)
    await in_thread(lambda: RequestAuditEntry.objects.all().delete())
    await move(vendor.url)
    over_mcp, over_cli = await agent.call(tenant.agent_key, "fake_list"), await agent.cli(jwt, "fake_write")
    data = over_mcp.json()["error"]["data"]
    assert (data["vendor"], data["reason"]) == ("fake", "vendor_unavailable")
    assert 0 < data["retryAfter"] <= OPEN_S
    assert over_cli.status_code == 502
    assert 0 < int(over_cli.headers["Retry-After"]) <= OPEN_S
    assert "several times in a row" in over_cli.json()["error"]
    assert await codes() == [("error", "vendor_unavailable")] * 2
    assert sum(vendor.seen.values()) == 0, "nothing is sent"
    listed = (await agent.rpc(tenant.agent_key, "tools/list")).json()["result"]
    assert listed == {"tools": [], "_meta": {"gateway/unavailable": {"fake": "vendor_unavailable"}}}
    circuits = runtime.current().pool.circuits
    await circuits.settled()
    (entry,) = await in_thread(lambda: vendor_health(tenant.organization))
    assert entry.circuit_state is CircuitState.OPEN
    later = circuits._monotonic() + OPEN_S
    circuits._monotonic = lambda: later
    assert "result" in (await agent.call(tenant.agent_key, "fake_list")).json()
    assert not circuits.has_trouble
    await circuits.settled()
    (entry,) = await in_thread(lambda: vendor_health(tenant.organization))
    assert entry.circuit_state is CircuitState.CLOSED


async def test_a_list_that_is_known_is_served_while_the_vendor_is_left_alone(
    agent: Agent, tenant: Tenant, vendor: FakeVendor, settings: LazySettings
) -> None:
    settings.TOOL_LIST_TTL_S = 0.0
    await warm(agent, vendor, tenant)
    (name,) = circuit_names(tenant)
    runtime.current().pool.circuits._circuits[name] = opened()
    listed = (await agent.rpc(tenant.agent_key, "tools/list")).json()["result"]
    assert [tool["name"] for tool in listed["tools"]] == ["fake_fail", "fake_list", "fake_write"]


def circuit_names(tenant: Tenant) -> list[str]:
    keys = runtime.current().pool._sessions
    return [shared_circuits.of_credential(key.vendor, key.credential_id) for key in keys]


def opened() -> Any:
    from proxy.vendors.circuit import CLOSED

    return CLOSED.joined(FAILURES_UNTIL_OPEN, runtime.current().pool.circuits._monotonic() + 60)


async def test_rejected_credentials_of_one_organization_open_nothing(
    agent: Agent, tenant: Tenant, other_tenant: Tenant, vendor: FakeVendor
) -> None:
    await in_thread(lambda: connect(other_tenant.organization, other_tenant.owner, apiKey="wrong-key"))
    for _ in range(4 * FAILURES_UNTIL_OPEN):
        refused = await agent.call(other_tenant.agent_key, "fake_list")
        assert refused.json()["error"]["data"]["reason"] == "vendor_rejected_credentials"
    assert not runtime.current().pool.circuits.has_trouble
    assert "result" in (await agent.call(tenant.agent_key, "fake_list")).json()
    refused = await agent.call(other_tenant.agent_key, "fake_list")
    assert refused.json()["error"]["data"]["reason"] == "vendor_rejected_credentials", "and it is still told why"


async def test_calls_of_one_organization_that_are_never_answered_hold_back_no_other(
    agent: Agent, tenant: Tenant, other_tenant: Tenant, vendor: FakeVendor, settings: LazySettings
) -> None:
    settings.VENDOR_CALLS_PER_ORGANIZATION = 30
    await in_thread(lambda: connect(other_tenant.organization, other_tenant.owner))
    await warm(agent, vendor, tenant, other_tenant)
    await in_thread(lambda: load_vendor(vendor.url, timeout_s=1))
    vendor.delay_s = 20
    answers = await asyncio.gather(*begin(agent, other_tenant.agent_key, FAILURES_UNTIL_OPEN))
    assert {each.json()["error"]["data"]["reason"] for each in answers} == {"vendor_timeout"}
    vendor.delay_s = 0
    await in_thread(lambda: load_vendor(vendor.url, timeout_s=60))
    held_back = await agent.call(other_tenant.agent_key, "fake_list")
    assert held_back.json()["error"]["data"]["retryAfter"] > 0
    assert "result" in (await agent.call(tenant.agent_key, "fake_list")).json()


OWN_ADDRESS = """
[[vendor]]
slug = "globex"
name = "Globex"
url = "{host}/mcp"
docs_url = "https://vendor.example/docs"
timeout_seconds = 5
[[vendor.fields]]
name = "host"
label = "Host"
secret = false
required = true
"""


async def test_an_address_that_one_organization_supplied_holds_back_no_other(
    agent: Agent, tenant: Tenant, other_tenant: Tenant, vendor: FakeVendor
) -> None:
    vendor.api_key = None

    def connect_both() -> None:
        load_catalog(OWN_ADDRESS, "test catalog")
        for organization, owner, url in (
            (tenant.organization, tenant.owner, vendor.url.removesuffix("/mcp")),
            (other_tenant.organization, other_tenant.owner, NOWHERE.removesuffix("/mcp")),
        ):
            connect_at(organization, owner, url)

    await in_thread(connect_both)
    for _ in range(FAILURES_UNTIL_OPEN):
        gone = await agent.call(other_tenant.agent_key, "globex_fake_list")
        assert gone.json()["error"]["data"] == {"vendor": "globex", "reason": "vendor_unavailable"}
    held_back = await agent.call(other_tenant.agent_key, "globex_fake_list")
    assert "retryAfter" in held_back.json()["error"]["data"]
    assert "result" in (await agent.call(tenant.agent_key, "globex_fake_list")).json()


def connect_at(organization: Organization, owner: Any, url: str) -> None:
    assert catalog.known_vendor("globex").customer_supplied_url
    connect(organization, owner, "globex", host=url)


async def test_the_cli_sees_a_vendor_that_moved_at_once(agent: Agent, tenant: Tenant, vendor: FakeVendor) -> None:
    token = await in_thread(lambda: access_token(tenant))
    await move(NOWHERE)
    assert (await agent.cli(token, "list")).status_code == 502
    await move(vendor.url)
    assert (await agent.cli(token, "list")).status_code == 200
