"""The one call that is let through to a vendor in trouble: it keeps the others away no longer than connecting takes.

Spec: docs/decisions/0023
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
from django.conf import LazySettings

from gateway.coordination import backend as coordination
from proxy import runtime
from proxy.vendors import shared_circuits
from proxy.vendors.circuit import CLOSED, FAILURES_UNTIL_OPEN
from tests.api.proxy.conftest import Agent
from tests.api.proxy.traces import until
from tests.factories.tenant import Tenant, connect, load_vendor
from tests.factories.threads import in_thread
from tests.fakes.vendor import FakeVendor

FOR_ALL = shared_circuits.vendor_wide("fake")


@pytest.fixture(autouse=True)
async def _no_circuit_is_left() -> AsyncIterator[None]:
    yield
    await in_thread(lambda: shared_circuits.publish(coordination.current(), FOR_ALL, None))


@pytest.fixture
async def both_warm(agent: Agent, tenant: Tenant, other_tenant: Tenant, vendor: FakeVendor) -> None:
    """Both organizations have a session, and the vendor more time than a busy machine takes."""
    await in_thread(lambda: connect(other_tenant.organization, other_tenant.owner))
    await in_thread(lambda: load_vendor(vendor.url, timeout_s=60))
    for each in (tenant, other_tenant):
        assert "result" in (await agent.call(each.agent_key, "fake_list")).json()


def half_open() -> None:
    """As after a pause in which nobody was let through."""
    circuits = runtime.current().pool.circuits
    circuits._circuits[FOR_ALL] = CLOSED.joined(FAILURES_UNTIL_OPEN, circuits._monotonic())


async def long_call(agent: Agent, tenant: Tenant, vendor: FakeVendor) -> asyncio.Task[httpx.Response]:
    """A call that has reached the vendor and is not answered for a long time; later calls are answered at once."""
    before, vendor.delay_s = vendor.seen["tools/call"], 50
    call = asyncio.ensure_future(agent.call(tenant.agent_key, "fake_list"))
    await until(lambda: vendor.seen["tools/call"] == before + 1)
    await asyncio.sleep(0.05)  # the vendor has begun to wait
    vendor.delay_s = 0
    return call


async def give_up(call: asyncio.Task[httpx.Response]) -> None:
    assert not call.done()
    call.cancel()
    await asyncio.wait([call])


@pytest.mark.usefixtures("both_warm")
async def test_a_connection_that_opens_ends_the_trial_however_long_the_call_takes(
    agent: Agent, tenant: Tenant, other_tenant: Tenant, vendor: FakeVendor
) -> None:
    for connections in runtime.current().transport._by_origin.values():
        connections.close_idle(longer_than_s=0)
    half_open()
    trial = await long_call(agent, other_tenant, vendor)
    assert not runtime.current().pool.circuits.has_trouble
    assert "result" in (await agent.call(tenant.agent_key, "fake_list")).json()
    await give_up(trial)
    assert not runtime.current().pool.circuits.has_trouble, "who leaves does not take back what was seen"


@pytest.mark.usefixtures("both_warm")
async def test_a_long_trial_on_an_old_connection_keeps_others_away_for_a_moment_only(
    agent: Agent, tenant: Tenant, other_tenant: Tenant, vendor: FakeVendor, settings: LazySettings
) -> None:
    circuits = runtime.current().pool.circuits
    now_s = circuits._monotonic()
    circuits._monotonic = lambda: now_s
    half_open()
    trial = await long_call(agent, other_tenant, vendor)
    held_back = (await agent.call(tenant.agent_key, "fake_list")).json()["error"]["data"]
    assert held_back == {"vendor": "fake", "reason": "vendor_unavailable", "retryAfter": 1}
    later_s = now_s + settings.VENDOR_CONNECT_TIMEOUT_S
    circuits._monotonic = lambda: later_s
    assert "result" in (await agent.call(tenant.agent_key, "fake_list")).json()
    assert not circuits.has_trouble
    await give_up(trial)
