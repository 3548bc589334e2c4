"""An organization's share of a vendor: never more than its places, in turn, and nobody waits for ever."""

from __future__ import annotations

import asyncio
import uuid

import pytest

from proxy.outcomes import VendorFault
from proxy.vendors import bulkhead
from proxy.vendors.bulkhead import Bulkhead, Compartment
from proxy.vendors.destination import PoolKey
from proxy.vendors.errors import Evidence, VendorProblem

ORG, OTHER_ORG = uuid.uuid4(), uuid.uuid4()


def key(org: uuid.UUID = ORG, vendor: str = "acme") -> PoolKey:
    return PoolKey.of(org, vendor, uuid.uuid4(), "http://vendor.example/mcp", {})


def later(seconds: float = 60.0) -> float:
    return asyncio.get_running_loop().time() + seconds


def waiting(compartment: Compartment, count: int) -> list[asyncio.Task[None]]:
    return [asyncio.ensure_future(compartment.acquire(later())) for _ in range(count)]


async def test_slots_belong_to_one_organization_at_one_vendor() -> None:
    compartments = Bulkhead(calls=2, max_queued=10, wait_s=60)
    own = compartments.compartment(key())
    assert [own.try_acquire(), own.try_acquire(), own.try_acquire()] == [True, True, False]
    assert compartments.compartment(key()) is own, "another credential of the same organization"
    assert compartments.compartment(key(OTHER_ORG)).try_acquire()
    assert compartments.compartment(key(vendor="globex")).try_acquire()
    own.release()
    assert own.try_acquire()


async def test_who_waits_longest_is_next_and_nobody_gets_in_between() -> None:
    own = Bulkhead(calls=1, max_queued=10, wait_s=60).compartment(key())
    assert own.try_acquire()
    first, second = waiting(own, 2)
    await asyncio.sleep(0)
    own.release()
    assert not own.try_acquire(), "the place has been handed over"
    await first
    assert not second.done()
    own.release()
    await second
    own.release()
    assert own.is_unused


async def test_the_queue_is_bounded() -> None:
    own = Bulkhead(calls=1, max_queued=2, wait_s=60).compartment(key())
    assert own.try_acquire()
    queue = waiting(own, 2)
    await asyncio.sleep(0)
    with pytest.raises(VendorProblem) as refused:
        await own.acquire(later())
    assert (refused.value.fault, refused.value.retry_after_s) == (VendorFault.UNAVAILABLE, 1)
    assert refused.value.evidence is Evidence.NONE, "our own line says nothing about the vendor"
    for _ in range(3):
        own.release()
    await asyncio.gather(*queue)
    assert own.is_unused


@pytest.mark.parametrize(("wait_s", "deadline_s"), [(0.01, 60), (60, 0.01)])
async def test_waiting_ends(wait_s: float, deadline_s: float) -> None:
    own = Bulkhead(calls=1, max_queued=2, wait_s=wait_s).compartment(key())
    assert own.try_acquire()
    with pytest.raises(VendorProblem):
        await own.acquire(later(deadline_s))
    own.release()
    assert own.is_unused


async def test_a_permit_handed_to_somebody_who_just_left_goes_to_the_next() -> None:
    own = Bulkhead(calls=1, max_queued=10, wait_s=60).compartment(key())
    assert own.try_acquire()
    leaving, staying = waiting(own, 2)
    await asyncio.sleep(0)
    own.release()
    leaving.cancel()
    await asyncio.wait_for(staying, 60)
    with pytest.raises(asyncio.CancelledError):
        await leaving
    own.release()
    assert own.is_unused


async def test_empty_compartments_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulkhead, "MAX_COMPARTMENTS", 3)
    compartments = Bulkhead(calls=1, max_queued=1, wait_s=60)
    busy = compartments.compartment(key(vendor="busy"))
    busy.try_acquire()
    for number in range(20):
        compartments.compartment(key(vendor=f"vendor-{number}"))
    assert len(compartments._compartments) <= 3
    assert compartments.compartment(key(vendor="busy")) is busy
