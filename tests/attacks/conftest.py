"""The world that every attack begins with."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from django.conf import LazySettings

from gateway.coordination import polled_epoch
from oauth_ext.jwt import keys
from tests.attacks.wire import Wire
from tests.attacks.world import World
from tests.factories.cast import Cast
from tests.factories.fixed_window import count_anew
from tests.factories.live_vendor import vendor_in_thread
from tests.factories.tenant import make_connected_tenant, make_tenant
from tests.fakes.vendor import FakeVendor

_numbers = itertools.count(1)


@pytest.fixture
def vendor() -> Iterator[FakeVendor]:
    """A vendor on a real socket."""
    with vendor_in_thread() as running:
        yield running


@pytest.fixture
def wire(committed_cast: Cast, monkeypatch: pytest.MonkeyPatch) -> Iterator[Wire]:
    """It reads the catalog's epoch with each call, so that a row changed before it counts."""
    monkeypatch.setattr(polled_epoch, "EVERY_S", 0.0)
    monkeypatch.setattr(polled_epoch, "USED_FOR_S", 0.0)
    made = Wire()
    yield made
    made.close()


@pytest.fixture
def world(
    committed_cast: Cast, vendor: FakeVendor, wire: Wire, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> World:
    """The attacker has not called yet, and has an address and windows that no other test uses."""
    count_anew(monkeypatch)
    keys.load_key_set()  # the first of a deployment is made when it is needed
    tenant = make_connected_tenant(committed_cast.org, committed_cast.user("owner"), vendor.url)
    other = make_tenant(committed_cast.other_org, committed_cast.user("other_owner"), name="other bot")
    number = next(_numbers)
    address = f"10.77.{number // 250 % 250}.{number % 250 + 1}"
    return World(committed_cast, tenant, other, vendor, wire, settings, monkeypatch, address)
