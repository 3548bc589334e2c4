"""Lines for the gateway's own resources: organizations share them, and waiting is not the vendor's fault.

Spec: docs/decisions/0004, 0008, 0026
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import pytest
from aiohttp import web

from gateway.lib.periodic import run_periodically
from proxy import timing as timings
from proxy.outcomes import VendorFault
from proxy.protocol import replies
from proxy.timing import Timing
from proxy.vendors import http1
from proxy.vendors import pool as pools
from proxy.vendors.bulkhead import Bulkhead
from proxy.vendors.connections import Connections
from proxy.vendors.destination import Destination, PoolKey
from proxy.vendors.errors import Evidence, VendorProblem
from proxy.vendors.pool import SessionPool
from proxy.vendors.rpc_request import RpcRequest
from proxy.vendors.send import send_request
from tests.api.proxy.traces import until
from tests.api.proxy.vendor_requests import only
from tests.factories.vendor_pools import new_pool, new_transport
from tests.fakes.raw_vendor import RawVendor, raw_vendor
from tests.fakes.vendor import FakeVendor, running_vendor


@dataclass
class SlowVendor(FakeVendor):
    """Calls with `slow` wait for `go_on`, and so does `initialize` while `holds_handshakes`."""

    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    waiting: int = 0
    holds_handshakes: bool = False

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """One HTTP request."""
        body = await request.json() if request.method == "POST" else {}
        is_slow = body.get("params", {}).get("arguments") == {"slow": True}
        if is_slow or (self.holds_handshakes and body.get("method") == "initialize"):
            self.waiting += 1
            await self.go_on.wait()
        return await super().handle(request)


@pytest.fixture
async def slow_vendor() -> AsyncIterator[SlowVendor]:
    async with running_vendor(SlowVendor) as running:
        assert isinstance(running, SlowVendor)
        yield running


@dataclass
class Callers:
    """Organizations by number, at an address of the catalog."""

    vendor: SlowVendor
    pool: SessionPool

    def where(self, organization: int) -> Destination:
        headers = {"X-Api-Key": "right-key"}
        key = PoolKey.of(uuid.UUID(int=organization), "fake", uuid.UUID(int=organization), self.vendor.url, headers)
        return Destination(key, lambda: (self.vendor.url, headers), fixed_address=True, timeout_s=30.0)

    async def call(
        self, organization: int, *, slow: bool = False, within_s: float = 30.0, timing: Timing | None = None
    ) -> Any:
        params = {"name": "fake_list", "arguments": {"slow": True} if slow else {}}
        deadline = asyncio.get_running_loop().time() + within_s
        where = self.where(organization)
        return await send_request(
            self.pool, where, RpcRequest("tools/call", params, deadline, timing=timing or Timing())
        )

    def begin(self, organization: int, count: int) -> list[asyncio.Future[Any]]:
        return [asyncio.ensure_future(self.call(organization, slow=True)) for _ in range(count)]


@pytest.fixture
async def callers(slow_vendor: SlowVendor) -> AsyncIterator[Callers]:
    """With the bounds that a process has by default."""
    transport = new_transport()
    pool = new_pool(transport, idle_s=60.0, bulkhead=Bulkhead(calls=30, max_queued=1_000, wait_s=60.0))
    yield Callers(slow_vendor, pool)
    await pool.aclose()
    await transport.aclose()


async def test_four_organizations_with_thirty_slow_calls_each_keep_a_fifth_from_nothing(callers: Callers) -> None:
    for organization in range(1, 6):
        await callers.call(organization)
    slow = [each for organization in range(1, 5) for each in callers.begin(organization, 30)]
    await until(lambda: callers.vendor.waiting == 90)
    for _ in range(3):
        assert isinstance(await asyncio.wait_for(callers.call(5), 10), replies.VendorResult)
    quick = [callers.call(organization) for organization in (6, 7, 5)]
    await asyncio.wait_for(asyncio.gather(*quick), 10)
    assert callers.vendor.waiting == 90, "the rest of the slow ones still wait in their own lines"
    callers.vendor.go_on.set()
    assert all(isinstance(each, replies.VendorResult) for each in await asyncio.gather(*slow))
    [connections] = callers.pool._transport._by_origin.values()
    await until(lambda: connections._permits.is_unused)
    assert connections._max_open == 100


async def test_a_stream_that_stays_open_keeps_no_connection_from_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its answer has been read: the rest is waited for only while nobody wants the connection."""
    monkeypatch.setattr(http1, "DRAIN_S", 60.0)
    is_over = asyncio.Event()
    event = b'data: {"jsonrpc":"2.0","id":1,"result":{}}\n\n'
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"

    async def answers_and_stays(vendor: RawVendor, writer: asyncio.StreamWriter) -> None:
        writer.write(b"%b%x\r\n%b\r\n" % (head, len(event), event))
        await is_over.wait()

    transport = new_transport(connections_per_origin=2)
    async with raw_vendor(answers_and_stays) as vendor:
        loop = asyncio.get_running_loop()
        for _ in range(8):
            prepared = transport.prepare(vendor.url, {}, organization="acme")
            async with transport.send("POST", prepared, b"{}", deadline=loop.time() + 10) as answer:
                assert await anext(answer.chunks()) == event
            assert len(only(transport)._draining) <= 2
        assert vendor.connections == 8
        is_over.set()
        await transport.aclose()


async def test_who_joins_a_handshake_inherits_nobody_elses_deadline(callers: Callers) -> None:
    callers.vendor.holds_handshakes = True
    hasty = asyncio.ensure_future(callers.call(1, within_s=0.1))
    await until(lambda: callers.vendor.waiting == 1)
    patient = asyncio.ensure_future(callers.call(1))
    with pytest.raises(VendorProblem) as caught:
        await hasty
    assert (caught.value.fault, caught.value.evidence) == (VendorFault.TIMEOUT, Evidence.NONE)
    assert not callers.pool.circuits.has_trouble
    callers.vendor.go_on.set()
    assert isinstance(await patient, replies.VendorResult)
    assert callers.vendor.seen["initialize"] == 1


async def test_a_pool_that_closes_waits_for_no_handshake(callers: Callers) -> None:
    callers.vendor.holds_handshakes = True
    with pytest.raises(VendorProblem):
        await callers.call(1, within_s=0.05)
    [handshake] = callers.pool._handshakes
    await callers.pool.aclose()
    assert handshake.cancelled()


async def test_waiting_for_a_slot_takes_nothing_of_the_vendors_time(
    slow_vendor: SlowVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    transport = new_transport()
    pool = new_pool(transport, idle_s=60.0, bulkhead=Bulkhead(calls=1, max_queued=9, wait_s=60.0))
    callers = Callers(slow_vendor, pool)
    await callers.call(1)
    loop = asyncio.get_running_loop()
    first = asyncio.ensure_future(callers.call(1, slow=True, within_s=1_000))
    await until(lambda: slow_vendor.waiting == 1)
    ahead_s, time = 0.0, loop.time
    monkeypatch.setattr(loop, "time", lambda: time() + ahead_s)
    deadline, deadlines = loop.time() + 1_000, []
    request = pools.VendorSession.request

    async def recording(session: Any, sent: RpcRequest) -> Any:
        deadlines.append(sent.deadline)
        return await request(session, sent)

    monkeypatch.setattr(pools.VendorSession, "request", recording)
    params = {"name": "fake_list", "arguments": {}}
    second = asyncio.ensure_future(send_request(pool, callers.where(1), RpcRequest("tools/call", params, deadline)))
    await until(lambda: any(each._line for each in pool.bulkhead._compartments.values()))
    ahead_s = 40.0
    slow_vendor.go_on.set()
    await asyncio.gather(first, second)
    assert deadlines[-1] >= deadline + 40
    await pool.aclose()
    await transport.aclose()


async def test_queueing_for_a_connection_is_not_the_vendors_time(
    slow_vendor: SlowVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    transport = new_transport(connections_per_origin=2)
    pool = new_pool(transport, idle_s=60.0)
    callers = Callers(slow_vendor, pool)
    for organization in (1, 2, 3):
        await callers.call(organization)
    ahead_s = 0.0
    monkeypatch.setattr(timings, "perf_counter", lambda: perf_counter() + ahead_s)
    served, given_up, *slow = (Timing() for _ in range(4))
    busy = [asyncio.ensure_future(callers.call(each, slow=True, timing=slow[each - 1])) for each in (1, 2)]
    await until(lambda: slow_vendor.waiting == 2)
    [connections] = transport._by_origin.values()
    queued = [asyncio.ensure_future(callers.call(3, timing=each)) for each in (served, given_up)]
    await until(lambda: len(connections._permits._line) == 2)
    ahead_s = 1_000.0
    queued[1].cancel()
    await asyncio.wait(queued[1:])
    slow_vendor.go_on.set()
    await asyncio.gather(*busy, queued[0])
    for timing in (served, given_up):
        assert timing.session.ms >= 1_000_000
        assert 0 <= timing.vendor.ms < 1_000_000
        assert timing.total_ms() + 1 >= timing.session.ms + timing.vendor.ms, "nothing counts twice"
    for timing in slow:
        assert timing.vendor.ms >= 1_000_000, "the vendor's own time is the vendor's"
        assert timing.session.ms < 1_000_000
    await pool.aclose()
    await transport.aclose()


async def test_a_timeout_after_queueing_says_nothing_about_the_vendor(slow_vendor: SlowVendor) -> None:
    transport = new_transport(connections_per_origin=2)
    pool = new_pool(transport, idle_s=60.0)
    callers = Callers(slow_vendor, pool)
    for organization in (1, 2, 3):
        await callers.call(organization)
    slow = [*callers.begin(1, 1), *callers.begin(2, 1)]
    await until(lambda: slow_vendor.waiting == 2)
    late = asyncio.ensure_future(callers.call(3, slow=True, within_s=2.5))
    [connections] = transport._by_origin.values()
    await until(lambda: len(connections._permits._line) == 1)
    slow[1].cancel()
    with pytest.raises(VendorProblem) as caught:
        await late
    assert slow_vendor.waiting == 3, "it was sent"
    assert (caught.value.fault, caught.value.evidence) == (VendorFault.TIMEOUT, Evidence.SENT_LATE)
    assert not pool.circuits.has_trouble
    await until(lambda: slow_vendor.seen["notifications/cancelled"] == 2 and len(connections._busy) == 1)
    with pytest.raises(VendorProblem) as caught:
        await callers.call(2, slow=True, within_s=0.2)
    assert caught.value.evidence is Evidence.NO_RESPONSE
    assert pool.circuits.has_trouble
    slow_vendor.go_on.set()
    await asyncio.wait(slow)
    await pool.aclose()
    await transport.aclose()


async def test_one_organizations_many_sessions_displace_its_own(callers: Callers) -> None:
    callers.pool._sessions._max_entries = 4
    await callers.call(2)
    for credential in range(10, 18):
        where = callers.where(1)
        key = PoolKey.of(where.key.org_id, "fake", uuid.UUID(int=credential), "", {})
        deadline = asyncio.get_running_loop().time() + 10
        await callers.pool.lease(Destination(key, where.open), deadline=deadline)
    held = [key.org_id.int for key in callers.pool._sessions]
    assert sorted(held) == [1, 1, 1, 2]
    await callers.call(2)
    assert callers.vendor.seen["initialize"] == 9, "the other organization's session is still open"


async def test_sweeping_goes_on_after_a_fault(monkeypatch: pytest.MonkeyPatch, callers: Callers) -> None:
    swept: list[int] = []

    def close_idle() -> None:
        swept.append(len(swept))
        if len(swept) == 1:
            raise RuntimeError("once")

    monkeypatch.setattr(callers.pool, "close_idle", close_idle)
    sweeper = asyncio.ensure_future(run_periodically(callers.pool.close_idle, 0.0, "not closed"))
    await until(lambda: len(swept) > 2)
    sweeper.cancel()
    await callers.call(1)
    transport = callers.pool._transport
    with monkeypatch.context() as patch:
        patch.setattr(Connections, "close_idle", close_idle_fails)
        transport._sweep()
    assert transport._sweeper is not None


def close_idle_fails(connections: Connections) -> None:
    raise RuntimeError("once")


async def test_a_generator_of_messages_is_closed_with_its_answer(callers: Callers) -> None:
    callers.vendor.reply = "sse"
    await callers.call(1)
    finalized: list[object] = []
    loop = asyncio.get_running_loop()
    import sys

    before = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(firstiter=before.firstiter, finalizer=finalized.append)
    try:
        await callers.call(1)
    finally:
        sys.set_asyncgen_hooks(*before)
    assert finalized == []
    assert loop.is_running()
