"""Connections to vendors: how many, for how long they are kept, and who gets one next."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import replace

import pytest

from proxy.outcomes import VendorFault
from proxy.vendors import connections as connections_module
from proxy.vendors.errors import Evidence, VendorProblem
from proxy.vendors.fair_semaphore import FairSemaphore
from proxy.vendors.transport import VendorTransport
from tests.api.proxy.traces import until
from tests.api.proxy.vendor_requests import ask, only
from tests.factories.vendor_pools import LIMITS, new_transport
from tests.fakes.deaf_port import deaf_port
from tests.fakes.raw_vendor import OK, RawVendor, raw_vendor, says


class Gate:
    """A vendor's script that answers when told."""

    def __init__(self) -> None:
        self.open = asyncio.Event()

    async def __call__(self, vendor: RawVendor, writer: asyncio.StreamWriter) -> None:
        await self.open.wait()
        writer.write(OK)


@pytest.fixture
def two_at_most(transport: VendorTransport) -> None:
    """Twice as many as one organization may use."""
    transport._connections_per_origin = 4


@pytest.mark.usefixtures("two_at_most")
async def test_no_more_connections_than_the_limit_and_everybody_is_served(transport: VendorTransport) -> None:
    gate = Gate()
    async with raw_vendor(gate) as vendor:
        calls = [asyncio.ensure_future(ask(transport, vendor.url)) for _ in range(20)]
        await until(lambda: vendor.connections == 2)
        await asyncio.sleep(0.1)
        assert vendor.connections == 2
        gate.open.set()
        assert await asyncio.gather(*calls) == [b"{}"] * 20
        assert (vendor.connections, len(vendor.requests)) == (2, 20)


@pytest.mark.usefixtures("two_at_most")
async def test_who_waits_longest_is_next(transport: VendorTransport) -> None:
    gate = Gate()
    served: list[int] = []

    async def call(number: int) -> None:
        await ask(transport, vendor.url)
        served.append(number)

    async with raw_vendor(gate) as vendor:
        calls = []
        for number in range(10):
            calls.append(asyncio.ensure_future(call(number)))
            await asyncio.sleep(0)
        gate.open.set()
        await asyncio.gather(*calls)
    assert sorted(served[:2]) == [0, 1]
    assert [abs(place - number) <= 1 for place, number in enumerate(served)] == [True] * 10


@pytest.mark.usefixtures("two_at_most")
async def test_the_permit_of_a_closed_connection_goes_to_the_next_in_the_queue(transport: VendorTransport) -> None:
    async with raw_vendor(says(OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"), then_close=True)) as vendor:
        assert await asyncio.gather(*(ask(transport, vendor.url) for _ in range(12))) == [b"{}"] * 12
        assert vendor.connections == 12
        await until(lambda: only(transport).is_unused)


@pytest.mark.usefixtures("two_at_most")
async def test_waiting_in_the_queue_ends_at_the_deadline_and_leaves_no_trace(transport: VendorTransport) -> None:
    gate = Gate()
    async with raw_vendor(gate) as vendor:
        first = [asyncio.ensure_future(ask(transport, vendor.url)) for _ in range(2)]
        await asyncio.sleep(0.05)
        with pytest.raises(VendorProblem) as caught:
            await ask(transport, vendor.url, within_s=0.1)
        assert caught.value.fault is VendorFault.TIMEOUT
        left = asyncio.ensure_future(ask(transport, vendor.url))
        await asyncio.sleep(0)
        left.cancel()
        with pytest.raises(asyncio.CancelledError):
            await left
        gate.open.set()
        assert await asyncio.gather(*first) == [b"{}"] * 2
        assert not only(transport)._permits._line
        assert await ask(transport, vendor.url) == b"{}"


@pytest.mark.usefixtures("two_at_most")
async def test_a_connection_handed_to_somebody_who_just_left_goes_to_the_next(
    transport: VendorTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate()
    async with raw_vendor(gate) as vendor:
        first = [asyncio.ensure_future(ask(transport, vendor.url)) for _ in range(2)]
        await asyncio.sleep(0.05)
        leaving, staying = (asyncio.ensure_future(ask(transport, vendor.url)) for _ in range(2))
        await asyncio.sleep(0)
        held = only(transport)
        serve_one = FairSemaphore._serve_one

        def serve_one_who_leaves(places: FairSemaphore) -> bool:
            if not leaving.cancelling():  # runs between the handing over and the waking up
                asyncio.get_running_loop().call_soon(leaving.cancel)
            return serve_one(places)

        monkeypatch.setattr(FairSemaphore, "_serve_one", serve_one_who_leaves)
        gate.open.set()
        with pytest.raises(asyncio.CancelledError):
            await leaving
        assert await staying == b"{}"
        assert await asyncio.gather(*first) == [b"{}"] * 2
        assert (len(held._idle), held._permits.is_unused) == (2, True)


@pytest.mark.usefixtures("two_at_most")
async def test_the_queue_is_bounded(transport: VendorTransport, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections_module, "MAX_QUEUED", 1)
    gate = Gate()
    async with raw_vendor(gate) as vendor:
        calls = [asyncio.ensure_future(ask(transport, vendor.url)) for _ in range(3)]
        await asyncio.sleep(0.05)
        with pytest.raises(VendorProblem, match="Too many calls are waiting"):
            await ask(transport, vendor.url)
        gate.open.set()
        assert await asyncio.gather(*calls) == [b"{}"] * 3


async def test_a_connection_that_the_vendor_closed_is_not_used(transport: VendorTransport) -> None:
    writers: list[asyncio.StreamWriter] = []

    async def script(vendor: RawVendor, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        writer.write(OK)

    async with raw_vendor(script) as vendor:
        for _ in range(3):
            assert await ask(transport, vendor.url) == b"{}"
            writers[-1].close()
            await until(lambda: not only(transport)._idle)
        assert vendor.connections == 3


async def test_a_rested_connection_is_checked_before_the_loop_has_noticed(transport: VendorTransport) -> None:
    async with raw_vendor(says(OK)) as vendor:
        assert await ask(transport, vendor.url) == b"{}"
        held = only(transport)
        [idle] = held._idle
        here, there = socket.socketpair()
        with here, there:
            there.close()  # its end is in the socket, and nobody has read it
            idle._transport.get_extra_info = lambda name: here  # type: ignore[union-attr, method-assign]
            idle.idle_since_s -= connections_module.CHECK_AFTER_IDLE_S
            assert await ask(transport, vendor.url) == b"{}"
        assert (vendor.connections, len(vendor.requests)) == (2, 2)


@pytest.mark.parametrize(
    ("header", "idle_s", "made"),
    [
        (b"", 59.0, 1),
        (b"", 61.0, 2),
        (b"Keep-Alive: timeout=5, max=9\r\n", 3.0, 1),
        (b"Keep-Alive: timeout=5\r\n", 4.5, 2),
    ],
)
async def test_idle_connections_are_used_while_they_are_young(
    transport: VendorTransport, header: bytes, idle_s: float, made: int
) -> None:
    async with raw_vendor(says(OK.replace(b"\r\n\r\n", b"\r\n" + header + b"\r\n"))) as vendor:
        assert await ask(transport, vendor.url) == b"{}"
        only(transport)._idle[0].idle_since_s -= idle_s
        assert await ask(transport, vendor.url) == b"{}"
        assert vendor.connections == made


async def test_the_sweep_closes_idle_connections_and_forgets_the_address(transport: VendorTransport) -> None:
    async with raw_vendor(says(OK)) as vendor:
        assert await ask(transport, vendor.url) == b"{}"
        transport._sweep()
        assert len(only(transport)._idle) == 1
        only(transport)._idle[0].idle_since_s -= 61
        transport._sweep()
        await asyncio.sleep(0.05)
        transport._sweep()
        assert not transport._by_origin
        assert await ask(transport, vendor.url) == b"{}"


async def test_after_closing_nothing_is_sent(transport: VendorTransport) -> None:
    gate = Gate()
    async with raw_vendor(gate) as vendor:
        call = asyncio.ensure_future(ask(transport, vendor.url))
        while not vendor.requests:
            await asyncio.sleep(0.01)
        await transport.aclose()
        for attempt in (call, ask(transport, vendor.url)):
            with pytest.raises(VendorProblem) as caught:
                await attempt
            assert caught.value.fault is VendorFault.UNAVAILABLE


@pytest.mark.parametrize(
    ("connect_s", "within_s", "evidence"),
    [(0.1, 60.0, Evidence.CONNECT_FAILED), (60.0, 0.1, Evidence.NONE)],
    ids=["as long as connecting may take", "no longer than the call had left"],
)
async def test_only_a_call_with_time_to_connect_says_that_nobody_is_there(
    connect_s: float, within_s: float, evidence: Evidence
) -> None:
    """A failure to connect counts for all organizations."""
    transport = new_transport(limits=replace(LIMITS, connect_s=connect_s))
    with deaf_port() as port, pytest.raises(VendorProblem) as caught:
        await ask(transport, f"http://127.0.0.1:{port}/mcp", within_s=within_s)
    assert (caught.value.fault, caught.value.evidence) == (VendorFault.TIMEOUT, evidence)
    assert not caught.value.is_own_timeout, "nothing was sent that could be cancelled"
    assert only(transport).is_unused
    await transport.aclose()
