"""One round of health probes over the connected vendors, concurrent within bounds."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

import structlog
from django.conf import settings

from gateway.catalog.vendor import Vendor
from gateway.coordination.store import CoordinationStore
from proxy.control_plane.health import state_cache as states
from proxy.control_plane.health.probe import probe
from proxy.control_plane.health.states import UNKNOWN, VendorHealth, after_probe
from proxy.vendors.transport import configured_transport

log = structlog.get_logger(__name__)
# Concurrent probes.
MAX_CONCURRENT_PROBES = 20
# Seconds. Spreads the probes of many deployments over time. At most a tenth of the interval, otherwise the states of a
# short interval would count as stale.
JITTER_S = 2.0


async def run_round(
    store: CoordinationStore, vendors: Sequence[Vendor], *, jitter_s: float | None = None
) -> dict[str, VendorHealth]:
    """Probe each vendor once and store its new state; returns the states by slug."""
    # Customer-supplied addresses are never probed.
    probed = [vendor for vendor in vendors if not vendor.customer_supplied_url]
    if jitter_s is None:
        jitter_s = min(JITTER_S, settings.HEALTH_PROBE_INTERVAL_S / 10)
    before = states.read_raw(store, [vendor.slug for vendor in probed])
    transport = configured_transport()
    semaphore = asyncio.Semaphore(MAX_CONCURRENT_PROBES)

    async def probe_one(vendor: Vendor) -> VendorHealth:
        await asyncio.sleep(random.uniform(0, jitter_s))  # noqa: S311 - spreads load, guards nothing
        async with semaphore:
            result = await probe(transport, vendor, deadline_s=settings.HEALTH_PROBE_DEADLINE_S)
        health = after_probe(
            before.get(vendor.slug, UNKNOWN), result, latency_threshold_ms=settings.HEALTH_LATENCY_THRESHOLD_MS
        )
        states.write(store, vendor.slug, health)
        return health

    try:
        found = await asyncio.gather(*(probe_one(vendor) for vendor in probed))
    finally:
        await transport.aclose()
    return {vendor.slug: health for vendor, health in zip(probed, found, strict=True)}
