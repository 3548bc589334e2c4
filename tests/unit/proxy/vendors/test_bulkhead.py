"""An organization's share of a vendor: never more than its places, in turn, and nobody waits for ever."""

from __future__ import annotations

import asyncio
import uuid

import pytest

from proxy.outcomes import VendorFault
from proxy.vendors import bulkhead
from proxy.vendors.bulkhead import Bulkhead, Compartment
from proxy.vendors.errors import Sign, VendorProblem
from proxy.vendors.pool import PoolKey

ORG, OTHER_ORG = uuid.uuid4(), uuid.uuid4()


def key(org: uuid.UUID = ORG, vendor: str = "acme") -> PoolKey:
    return PoolKey.of(org, vendor, uuid.uuid4(), "http://vendor.example/mcp", {})


def later(seconds: float = 60.0) -> float:
    return asyncio.get_running_loop().time() + seconds


def waiting(compartment: Compartment, count: int) -> list[asyncio.Task[None]]:
    return [asyncio.ensure_future(compartment.wait(later())) for _ in range(count)]


async def test_places_belong_to_one_organization_at_one_vendor() -> None:
    places = Bulkhead(calls=2, waiting=10, wait_s=60)
    own = places.compartment(key())
    assert [own.take(), own.take(), own.take()] == [True, True, False]
    assert places.compartment(key()) is own, "another credential of the same organization"
    assert places.compartment(key(OTHER_ORG)).take()
    assert places.compartment(key(vendor="globex")).take()
    own.give_back()
    assert own.take()


async def test_who_waits_longest_is_next_and_nobody_gets_in_between() -> None:
    own = Bulkhead(calls=1, waiting=10, wait_s=60).compartment(key())
    assert own.take()
    first, second = waiting(own, 2)
    await asyncio.sleep(0)
    own.give_back()
    assert not own.take(), "the place has been handed over"
    await first
    assert not second.done()
    own.give_back()
    await second
    own.give_back()
    assert own.is_unused


async def test_the_line_has_an_end() -> None:
    own = Bulkhead(calls=1, waiting=2, wait_s=60).compartment(key())
    assert own.take()
    line = waiting(own, 2)
    await asyncio.sleep(0)
    with pytest.raises(VendorProblem) as refused:
        await own.wait(later())
    assert (refused.value.fault, refused.value.retry_after_s) == (VendorFault.UNAVAILABLE, 1)
    assert refused.value.sign is Sign.NOTHING, "our own line says nothing about the vendor"
    for _ in range(3):
        own.give_back()
    await asyncio.gather(*line)
    assert own.is_unused


@pytest.mark.parametrize(("wait_s", "deadline_s"), [(0.01, 60), (60, 0.01)])
async def test_waiting_ends(wait_s: float, deadline_s: float) -> None:
    own = Bulkhead(calls=1, waiting=2, wait_s=wait_s).compartment(key())
    assert own.take()
    with pytest.raises(VendorProblem):
        await own.wait(later(deadline_s))
    own.give_back()
    assert own.is_unused


async def test_a_place_handed_to_somebody_who_just_left_goes_to_the_next() -> None:
    own = Bulkhead(calls=1, waiting=10, wait_s=60).compartment(key())
    assert own.take()
    leaving, staying = waiting(own, 2)
    await asyncio.sleep(0)
    own.give_back()
    leaving.cancel()
    await asyncio.wait_for(staying, 5)
    with pytest.raises(asyncio.CancelledError):
        await leaving
    own.give_back()
    assert own.is_unused


async def test_empty_compartments_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulkhead, "MOST_KEPT", 3)
    places = Bulkhead(calls=1, waiting=1, wait_s=60)
    busy = places.compartment(key(vendor="busy"))
    busy.take()
    for number in range(20):
        places.compartment(key(vendor=f"vendor-{number}"))
    assert len(places._compartments) <= 3
    assert places.compartment(key(vendor="busy")) is busy
