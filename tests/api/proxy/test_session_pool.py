"""Sessions with a vendor end when nobody uses them, and never while somebody does; there are only so many of them.

Spec: §4.14 (3) · D104
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from aiohttp import web
from django.conf import LazySettings

from proxy import runtime
from proxy.protocol import replies
from proxy.vendors import pool as pools
from proxy.vendors.destination import Destination, PoolKey
from proxy.vendors.pool import SessionPool
from proxy.vendors.send import send_request
from proxy.vendors.transport import VendorTransport
from tests.api.proxy.conftest import Agent
from tests.api.proxy.traces import until
from tests.factories.tenant import Tenant
from tests.fakes.vendor import FakeVendor, running_vendor

ONE, OTHER = uuid.UUID(int=1), uuid.UUID(int=2)


@dataclass
class PatientVendor(FakeVendor):
    """Answers slow calls when `go_on` is set."""

    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    waiting: int = 0

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """One HTTP request."""
        body = await request.json() if request.method == "POST" else {}
        if body.get("params", {}).get("arguments") == {"slow": True}:
            self.waiting += 1
            await self.go_on.wait()
        return await super().handle(request)


@pytest.fixture
async def patient() -> AsyncIterator[PatientVendor]:
    async with running_vendor(PatientVendor) as running:
        assert isinstance(running, PatientVendor)
        yield running


class Caller:
    """Calls for several organizations with several credentials each."""

    def __init__(self, vendor: PatientVendor, pool: SessionPool) -> None:
        self.vendor = vendor
        self.pool = pool

    async def call(self, credential: int = 1, organization: uuid.UUID = ONE, *, slow: bool = False) -> None:
        """One call, which is answered."""
        credential_id = uuid.UUID(int=credential)
        key = PoolKey.of(organization, "fake", credential_id, self.vendor.url, {"X-Api-Key": "right-key"})
        where = Destination(key, lambda: (self.vendor.url, {"X-Api-Key": "right-key"}))
        deadline = asyncio.get_running_loop().time() + 20.0
        params = {"name": "fake_list", "arguments": {"slow": True} if slow else {}}
        found = await send_request(self.pool, where, "tools/call", params, deadline=deadline)
        assert isinstance(found, replies.VendorResult)

    async def slow_call(self, credential: int = 1) -> asyncio.Future[None]:
        """One call, which has reached the vendor and waits there."""
        waiting = self.vendor.waiting
        calling = asyncio.ensure_future(self.call(credential, slow=True))
        await until(lambda: self.vendor.waiting > waiting)
        return calling

    def held(self) -> int:
        """How many sessions there are."""
        return len(self.pool._sessions)

    async def deleted(self, *sessions: str) -> bool:
        """Wait until what is being closed is closed; whether the vendor was told of exactly these."""
        await asyncio.gather(*self.pool._closing)
        return self.vendor.deleted == list(sessions)


@asynccontextmanager
async def caller(vendor: PatientVendor, *, idle_s: float) -> AsyncIterator[Caller]:
    transport = VendorTransport(allow_private=True)
    pool = SessionPool(transport, idle_s=idle_s)
    try:
        yield Caller(vendor, pool)
    finally:
        await pool.aclose()
        await transport.aclose()


async def test_a_session_that_nobody_used_for_long_is_ended_at_the_vendor(patient: PatientVendor) -> None:
    async with caller(patient, idle_s=0.0) as one:
        await one.call()
        await one.call(organization=OTHER)
        one.pool.close_idle()
        assert one.held() == 0
        assert await one.deleted("session-1", "session-2")
        await one.call()
        assert patient.seen["initialize"] == 3, "the next call has a new one"


async def test_one_that_was_used_lately_stays(patient: PatientVendor) -> None:
    async with caller(patient, idle_s=60.0) as one:
        await one.call()
        one.pool.close_idle()
        assert one.held() == 1
        assert await one.deleted()
        await one.call()
        assert patient.seen["initialize"] == 1


async def test_none_is_idle_while_a_call_runs_on_it(patient: PatientVendor) -> None:
    """A call may take longer than a session may be idle, and two may share it."""
    async with caller(patient, idle_s=0.0) as one:
        calls = [await one.slow_call(), await one.slow_call()]
        one.pool.close_idle()
        calls[0].cancel()
        await asyncio.wait(calls[:1])
        one.pool.close_idle()
        assert one.held() == 1
        assert await one.deleted()
        patient.go_on.set()
        await calls[1]
        one.pool.close_idle()
        assert await one.deleted("session-1")


async def test_idle_begins_with_the_end_of_a_call(patient: PatientVendor) -> None:
    async with caller(patient, idle_s=60.0) as one:
        calling = await one.slow_call()
        (session,) = one.pool._sessions.values()
        session.last_used_s -= 100.0  # so long ago it began
        patient.go_on.set()
        await calling
        one.pool.close_idle()
        assert one.held() == 1
        session.last_used_s -= 61.0
        one.pool.close_idle()
        assert one.held() == 0


async def test_of_too_many_the_one_used_longest_ago_goes(
    patient: PatientVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "MAX_SESSIONS", 3)
    async with caller(patient, idle_s=60.0) as one:
        for credential in (1, 2, 3, 1, 4):
            await one.call(credential, OTHER if credential == 3 else ONE)
            assert one.held() <= 3
        assert await one.deleted("session-2")
        await one.call(1)
        await one.call(3, OTHER)
        assert patient.seen["initialize"] == 4, "the others are still open"
        await one.call(2)
        assert await one.deleted("session-2", "session-4")


async def test_none_that_a_call_runs_on_goes_for_another(
    patient: PatientVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "MAX_SESSIONS", 2)
    async with caller(patient, idle_s=60.0) as one:
        calls = [await one.slow_call(1)]
        await one.call(2)
        await one.call(3)
        assert await one.deleted("session-2"), "the first was used longest ago, but is in use"
        calls += [await one.slow_call(3), await one.slow_call(4)]
        assert (one.held(), await one.deleted("session-2")) == (3, True)
        patient.go_on.set()
        await asyncio.gather(*calls)
        await one.call(5)
        assert one.held() == 2, "as few as there may be, as soon as it is possible"
        assert await one.deleted("session-2", "session-1", "session-3")


async def test_the_bound_is_two_thousand() -> None:
    assert pools.MAX_SESSIONS == 2_000


async def test_a_process_looks_for_idle_sessions_on_its_own(
    agent: Agent, tenant: Tenant, vendor: FakeVendor, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.VENDOR_SESSION_IDLE_S = 0.0
    monkeypatch.setattr(runtime, "SWEEP_EVERY_S", 0.01)
    assert "result" in (await agent.call(tenant.agent_key, "fake_list")).json()
    await until(lambda: vendor.deleted)
    assert vendor.deleted[0] == "session-1", "the call may have needed a second one, which goes in its turn"
    assert "result" in (await agent.call(tenant.agent_key, "fake_list")).json()
