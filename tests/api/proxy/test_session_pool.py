"""Sessions with a vendor end when nobody uses them, and never while somebody does; there are only so many of them.

Spec: §4.14 (3) · D104
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from aiohttp import web
from django.conf import LazySettings

from proxy import runtime
from proxy.outcomes import VendorFault
from proxy.protocol import replies
from proxy.vendors import errors
from proxy.vendors import pool as pools
from proxy.vendors.destination import Destination, PoolKey
from proxy.vendors.errors import VendorProblem
from proxy.vendors.pool import SessionPool
from proxy.vendors.rpc_request import RpcRequest
from proxy.vendors.send import send_request
from proxy.vendors.session import VendorSession
from tests.api.proxy.conftest import Agent
from tests.api.proxy.traces import until
from tests.factories.tenant import Tenant
from tests.factories.vendor_pools import new_pool, new_transport
from tests.fakes.vendor import FakeVendor, running_vendor

ONE, OTHER = uuid.UUID(int=1), uuid.UUID(int=2)


@dataclass
class PatientVendor(FakeVendor):
    """Answers slow calls, cancellations, and with `holds_deletes` DELETEs, when `go_on` is set."""

    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    waiting: int = 0
    holds_deletes: bool = False
    closing: int = 0  # DELETEs at the vendor
    most_closing: int = 0

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """One HTTP request."""
        body = await request.json() if request.method == "POST" else {}
        if body.get("params", {}).get("arguments") == {"slow": True}:
            self.waiting += 1
            await self.go_on.wait()
        if body.get("method") == "notifications/cancelled":
            await self.go_on.wait()
        if request.method == "DELETE" and self.holds_deletes:
            self.closing += 1
            self.most_closing = max(self.closing, self.most_closing)
            await self.go_on.wait()
            self.closing -= 1
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
        self.is_broken = False  # the first credential
        self.sealings = 1  # how often the credentials were sealed; only the last sealing opens

    async def call(self, credential: int = 1, organization: uuid.UUID = ONE, *, slow: bool = False) -> None:
        """One call, which is answered."""
        credential_id = uuid.UUID(int=credential)
        key = PoolKey.of(organization, "fake", credential_id, self.vendor.url, {"X-Api-Key": "right-key"})
        where = Destination(key, partial(self._open, credential, self.sealings), secrets=lambda: ["right-key"])
        deadline = asyncio.get_running_loop().time() + 20.0
        params = {"name": "fake_list", "arguments": {"slow": True} if slow else {}}
        found = await send_request(self.pool, where, RpcRequest("tools/call", params, deadline))
        assert isinstance(found, replies.VendorResult)

    def _open(self, credential: int, sealing: int) -> tuple[str, dict[str, str]]:
        if (self.is_broken and credential == 1) or sealing < self.sealings:
            raise errors.rejected_credentials()
        return self.vendor.url, {"X-Api-Key": "right-key"}

    async def slow_call(self, credential: int = 1) -> asyncio.Future[None]:
        """One call, which has reached the vendor and waits there."""
        waiting = self.vendor.waiting
        calling = asyncio.ensure_future(self.call(credential, slow=True))
        await until(lambda: self.vendor.waiting > waiting)
        return calling

    def held(self) -> int:
        """How many sessions there are."""
        return len(self.pool._sessions)

    def sessions(self) -> list[VendorSession]:
        return [session for key in self.pool._sessions if (session := self.pool._sessions.peek(key)) is not None]

    def awake(self) -> int:
        return sum(session.access is not None for session in self.sessions())

    async def deleted(self, *sessions: str) -> bool:
        """Wait until what is being closed is closed; whether the vendor was told of exactly these."""
        await asyncio.gather(*self.pool._closing)
        return sorted(self.vendor.deleted) == sorted(sessions)


@asynccontextmanager
async def caller(
    vendor: PatientVendor, *, idle_s: float = 60.0, max_sessions: int = 100, max_awake: int = 100
) -> AsyncIterator[Caller]:
    transport = new_transport()
    pool = new_pool(transport, idle_s=idle_s, max_sessions=max_sessions, max_awake=max_awake)
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
        (session,) = map(one.pool._sessions.peek, one.pool._sessions)
        assert session is not None
        session.last_used_s -= 100.0  # so long ago it began
        patient.go_on.set()
        await calling
        one.pool.close_idle()
        assert one.held() == 1
        session.last_used_s -= 61.0
        one.pool.close_idle()
        assert one.held() == 0


async def test_of_too_many_the_one_used_longest_ago_goes(patient: PatientVendor) -> None:
    async with caller(patient, max_sessions=3) as one:
        for credential in (1, 2, 3, 1, 4):
            await one.call(credential, OTHER if credential == 3 else ONE)
            assert one.held() <= 3
        assert await one.deleted("session-2")
        await one.call(1)
        await one.call(3, OTHER)
        assert patient.seen["initialize"] == 4, "the others are still open"
        await one.call(2)
        assert await one.deleted("session-2", "session-4")


async def test_one_that_a_call_runs_on_is_closed_after_the_call(patient: PatientVendor) -> None:
    async with caller(patient, max_sessions=2) as one:
        calls = [await one.slow_call(1), await one.slow_call(1)]
        await one.call(2)
        await one.call(3)
        assert (one.held(), await one.deleted()) == (2, True)
        calls[0].cancel()
        await asyncio.wait(calls[:1])
        assert await one.deleted()
        patient.go_on.set()
        await calls[1]
        assert await one.deleted("session-1")


async def test_a_parked_session_needs_no_handshake(patient: PatientVendor) -> None:
    """It keeps its id, and its requests go on counting."""
    async with caller(patient, max_awake=2) as one:
        for _ in range(3):
            for credential in range(1, 6):
                await one.call(credential, OTHER if credential == 3 else ONE)
        assert patient.seen == {"initialize": 5, "notifications/initialized": 5, "tools/call": 15}
        assert await one.deleted()
        assert (one.held(), one.awake()) == (5, 2)
        assert sorted(body["id"] for body in patient.bodies if body["method"] == "tools/call") == sorted([2, 3, 4] * 5)
        secrets = [session.access for session in one.sessions() if session.access is not None]
        assert len(secrets) == 2, "a parked one holds no opened credential"


async def test_a_session_in_use_is_not_parked(patient: PatientVendor) -> None:
    async with caller(patient, max_awake=1) as one:
        calling = await one.slow_call(1)
        await one.call(2)
        await one.call(3)
        assert one.awake() == 2
        patient.go_on.set()
        await calling
        await one.call(3)
        assert one.awake() == 1
        assert patient.seen["initialize"] == 3


async def test_a_parked_session_is_closed_with_its_credential(patient: PatientVendor) -> None:
    async with caller(patient, idle_s=0.0, max_awake=1) as one:
        await one.call(1)
        await one.call(2)
        one.pool.close_idle()
        assert await one.deleted("session-1", "session-2")
        assert patient.headers["X-Api-Key"] == "right-key"


async def test_a_parked_session_whose_credential_opens_no_more_fails_its_call_alone(patient: PatientVendor) -> None:
    async with caller(patient, idle_s=0.0, max_awake=1) as one:
        await one.call(1)
        await one.call(2)
        one.is_broken = True
        with pytest.raises(VendorProblem) as caught:
            await one.call(1)
        assert caught.value.fault is VendorFault.REJECTED_CREDENTIALS
        await one.call(2)
        one.pool.close_idle()
        assert await one.deleted("session-2"), "the other cannot be closed"


async def test_a_parked_session_opens_its_credential_as_it_was_sealed_last(patient: PatientVendor) -> None:
    """Under another data key the credential is the same, and so is the session."""
    async with caller(patient, max_awake=1) as one:
        await one.call(1)
        await one.call(2, OTHER)
        one.sealings += 1
        await one.call(1)
        await one.call(2, OTHER)
        assert patient.seen["initialize"] == 2


async def test_a_session_that_cannot_be_parked_is_parked_later(patient: PatientVendor) -> None:
    """The vendor does not take the message that its call was cancelled."""
    async with caller(patient, max_awake=1) as one:
        calling = await one.slow_call(1)
        calling.cancel()
        await until(lambda: one.sessions()[0]._background)
        await one.call(2, OTHER)
        assert one.awake() == 2
        patient.go_on.set()
        await until(lambda: not one.sessions()[0]._background)
        await one.call(2, OTHER)
        assert one.awake() == 1


class StatelessVendor(PatientVendor):
    """Issues no session ids, until `is_upgraded`."""

    is_upgraded = False

    def _initialize(self, body: dict[str, Any]) -> web.Response:
        answer = super()._initialize(body)
        if not self.is_upgraded:
            self.sessions.add("")
            del answer.headers["Mcp-Session-Id"]
        return answer


@pytest.fixture
async def stateless() -> AsyncIterator[StatelessVendor]:
    async with running_vendor(StatelessVendor) as running:
        assert isinstance(running, StatelessVendor)
        yield running


async def test_a_vendor_without_sessions_is_asked_once_for_its_version(stateless: StatelessVendor) -> None:
    """An idle session costs it nothing, and ends after an hour without a request."""
    async with caller(stateless, idle_s=0.0) as one:
        for _ in range(3):
            await one.call()
            one.pool.close_idle()
            assert (one.held(), one.awake()) == (1, 0), "it holds no opened credential meanwhile"
        assert stateless.seen == {"initialize": 1, "notifications/initialized": 1, "tools/call": 3}
        for session in one.sessions():
            session.last_used_s -= pools.STATELESS_IDLE_S
        one.pool.close_idle()
        assert (one.held(), await one.deleted()) == (0, True)


async def test_a_vendor_that_begins_to_have_sessions_is_initialized_again(stateless: StatelessVendor) -> None:
    stateless.lost_session_status = 400
    async with caller(stateless) as one:
        await one.call()
        stateless.is_upgraded = True
        stateless.sessions.clear()
        await one.call()
        assert stateless.seen == {"initialize": 2, "notifications/initialized": 2, "tools/call": 3}


async def test_closing_takes_few_connections_at_a_time(patient: PatientVendor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "CLOSED_AT_ONCE", 2)
    async with caller(patient, idle_s=0.0) as one:
        for credential in range(1, 6):
            await one.call(credential)
        patient.holds_deletes = True
        one.pool.close_idle()
        await until(lambda: patient.closing == 2)
        assert len(one.pool._closing) == 5
        patient.go_on.set()
        assert await one.deleted(*(f"session-{number}" for number in range(1, 6)))
        assert patient.most_closing == 2


async def test_a_process_looks_for_idle_sessions_on_its_own(
    agent: Agent, tenant: Tenant, vendor: FakeVendor, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.VENDOR_SESSION_IDLE_S = 0.0
    monkeypatch.setattr(runtime, "SWEEP_EVERY_S", 0.01)
    assert "result" in (await agent.call(tenant.agent_key, "fake_list")).json()
    await until(lambda: vendor.deleted)
    assert vendor.deleted[0] == "session-1", "the call may have needed a second one, which goes in its turn"
    assert "result" in (await agent.call(tenant.agent_key, "fake_list")).json()
