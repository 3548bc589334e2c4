"""The bounds of listening: no tenant takes the places of others. docs/decisions/0113"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from orgs.principal import Principal
from proxy.sessions.listening_hub import ListeningHub
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

    def new(self, **bounds: int) -> ListeningHub:
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
