"""A vendor that misbehaves on demand, the organization that is connected to it, and deadlines that are met quickly."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from django.conf import LazySettings

from gateway.coordination import backend as coordination
from proxy.vendors import shared_circuits
from tests.factories.cast import Cast
from tests.factories.tenant import Tenant, make_connected_tenant
from tests.fakes.hostile_vendor import HostileVendor, hostile_vendor
from tests.fakes.vendor_faults import MIB


@pytest.fixture(autouse=True)
def _short_deadlines(settings: LazySettings) -> None:
    settings.VENDOR_CONNECT_TIMEOUT_S = 5.0
    settings.VENDOR_CHUNK_TIMEOUT_S = 0.3
    settings.VENDOR_REPLY_BYTES = MIB


@pytest.fixture
async def hostile() -> AsyncIterator[HostileVendor]:
    async with hostile_vendor() as running:
        yield running
    shared_circuits.publish(coordination.current(), shared_circuits.vendor_wide("fake"), None)


@pytest.fixture
def tenant(hostile: HostileVendor, committed_cast: Cast) -> Tenant:
    """An organization that is connected to the hostile vendor."""
    owner = committed_cast.user("owner")
    return make_connected_tenant(committed_cast.org, owner, hostile.url, timeout_s=120)
