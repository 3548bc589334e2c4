"""The bounds of listening: no tenant takes the places of others. docs/decisions/0113"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest

from orgs.principal import Principal
from proxy.sessions.listening_hub import DISPLACES_EVERY_S, ListeningHub
from proxy.vendors import listening
from proxy.vendors.destination import Destination, PoolKey
from proxy.vendors.errors import VendorProblem
from tests.factories.vendor_pools import new_pool, new_transport

NOWHERE = "http://127.0.0.1:9/mcp"
ORGS = [uuid.uuid4() for _ in range(2)]


def principal_of(org_id: uuid.UUID) -> Principal:
    return cast("Principal", SimpleNamespace(org_id=org_id, subject="person"))


def destination(org_id: uuid.UUID, vendor: str = "acme", *, fixed: bool = True) -> Destination:
    key = PoolKey.of(org_id, vendor, uuid.uuid4(), NOWHERE, {})
    return Destination(key, lambda: (NOWHERE, {}), fixed_address=fixed)


class Hubs:
    def __init__(self) -> None:
        self.transport = new_transport()
        self.made: list[ListeningHub] = []

    def new(self, **bounds: Any) -> ListeningHub:
        many: dict[str, Any] = dict.fromkeys(
            ("of_all", "of_vendor", "of_organization", "of_subject", "streams_of_vendor", "streams_of_organization"), 9
        )
        self.made.append(ListeningHub(new_pool(self.transport), **{**many, **bounds}))
        return self.made[-1]


@pytest.fixture
async def hubs() -> AsyncIterator[Hubs]:
    made = Hubs()
    yield made
    for each in made.made:
        await each.aclose()
    await made.transport.aclose()


def take(hub: ListeningHub, target: Destination) -> None:
    hub.take(principal_of(target.key.org_id), target, "test://x", lambda: None)


@pytest.mark.parametrize("slug", ["acme", "all"])
async def test_the_name_of_a_vendor_is_no_other_bound(hubs: Hubs, slug: str) -> None:
    hub = hubs.new(of_all=3)
    for _ in range(3):
        take(hub, destination(ORGS[0], slug))
    assert hub.taken == 3
    with pytest.raises(VendorProblem):
        take(hub, destination(ORGS[1], slug))


@pytest.mark.parametrize("bound", ["of_vendor", "streams_of_vendor"])
async def test_only_a_server_that_is_shared_has_shared_places(hubs: Hubs, bound: str) -> None:
    """At an address of its own an organization takes no connection from others."""
    for fixed in (True, False):
        hub = hubs.new(**{bound: 1})
        take(hub, destination(ORGS[0], fixed=fixed))
        with pytest.raises(VendorProblem):
            take(hub, destination(ORGS[0], fixed=fixed))
        if fixed:
            with pytest.raises(VendorProblem):
                take(hub, destination(ORGS[1], fixed=fixed))
        else:
            take(hub, destination(ORGS[1], fixed=fixed))


def owners(hub: ListeningHub) -> list[uuid.UUID]:
    return [key.org_id for key in hub._listenings]


async def test_streams_to_a_shared_server_are_shared_fairly(hubs: Hubs) -> None:
    """The one with most gives one up for one with fewer, and no more than that."""
    hub, third = hubs.new(streams_of_vendor=4, streams_of_organization=3), uuid.uuid4()
    woken: list[str] = []
    for number in range(3):
        target = destination(ORGS[0])
        held = hub.take(principal_of(ORGS[0]), target, f"test://{number}", partial(woken.append, str(number)))
    take(hub, destination(ORGS[1]))
    assert (hub.stream_count, held.interest.is_displaced) == (4, False)
    take(hub, destination(third))
    assert owners(hub) == [ORGS[0], ORGS[0], ORGS[1], third]
    assert (woken, held.interest.is_displaced) == (["2"], True), "the newest one"
    for full in (ORGS[0], ORGS[1], third):
        with pytest.raises(VendorProblem):
            take(hub, destination(full))
    take(hub, destination(uuid.uuid4()))
    assert len(set(owners(hub))) == 4
    with pytest.raises(VendorProblem):
        take(hub, destination(uuid.uuid4()))
    with pytest.raises(VendorProblem):
        await hub.confirm(held, deadline=asyncio.get_running_loop().time() + 5)
    taken = hub.taken
    hub.give_back(held)
    assert (hub.taken, hub.stream_count) == (taken - 1, 4)
    await asyncio.sleep(0)
    assert hub.stream_count == 4, "the end of a displaced one takes nothing from others"


async def test_who_comes_and_goes_displaces_others_rarely(hubs: Hubs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time all subscribers of a stream would read again."""
    monkeypatch.setattr(listening, "FIRST_PAUSE_S", 0.0)
    monkeypatch.setattr(listening, "LINGER_S", 0.0)
    now_s = [0.0]
    hub = hubs.new(streams_of_vendor=2, streams_of_organization=2, monotonic=lambda: now_s[0])
    for _ in range(2):
        take(hub, destination(ORGS[0]))
    for expected in (True, False, False, True):
        comes = destination(ORGS[1])
        try:
            held = hub.take(principal_of(ORGS[1]), comes, "test://x", lambda: None)
        except VendorProblem:
            assert not expected
        else:
            assert expected
            hub.give_back(held)
            async with asyncio.timeout(5):
                while ORGS[1] in owners(hub):
                    await asyncio.sleep(0.01)
            take(hub, destination(ORGS[0]))
        assert owners(hub) == [ORGS[0]] * 2
        now_s[0] += DISPLACES_EVERY_S / 3
    assert len(hub._displaced_s) == 1


async def test_who_waits_for_a_displaced_stream_is_told_at_once(hubs: Hubs) -> None:
    hub = hubs.new(streams_of_vendor=2, streams_of_organization=2)
    take(hub, destination(ORGS[0]))
    held = hub.take(principal_of(ORGS[0]), destination(ORGS[0]), "test://x", lambda: None)
    waiting = asyncio.ensure_future(hub.confirm(held, deadline=asyncio.get_running_loop().time() + 60))
    await asyncio.sleep(0)
    take(hub, destination(ORGS[1]))
    with pytest.raises(VendorProblem):
        await asyncio.wait_for(waiting, 1)


async def test_an_organization_past_its_bound_displaces_nobody(hubs: Hubs) -> None:
    hub = hubs.new(streams_of_vendor=4, streams_of_organization=1)
    take(hub, destination(ORGS[0]))
    with pytest.raises(VendorProblem):
        take(hub, destination(ORGS[0]))
    assert hub.stream_count == 1
