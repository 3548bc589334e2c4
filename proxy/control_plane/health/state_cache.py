"""Health states in the coordination store, written by the monitor and read by every process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
from django.conf import settings

from gateway.coordination.store import CoordinationStore
from gateway.lib import clock
from gateway.lib.sentences import plain
from proxy.control_plane.health.states import INTERVALS_UNTIL_STALE, VendorHealth, as_read

_decoder = msgspec.json.Decoder(VendorHealth)


def write(store: CoordinationStore, vendor: str, health: VendorHealth) -> None:
    # Two intervals longer than readers use the state, for the count of consecutive failures.
    ttl_s = (INTERVALS_UNTIL_STALE + 2) * settings.HEALTH_PROBE_INTERVAL_S
    store.put_health(vendor, msgspec.json.encode(health, enc_hook=plain), ttl_s)


def read_raw(store: CoordinationStore, vendors: Iterable[str]) -> dict[str, VendorHealth]:
    found: dict[str, VendorHealth] = {}
    for vendor, raw in store.health(list(vendors)).items():
        try:
            found[vendor] = _decoder.decode(raw)
        except msgspec.ValidationError:  # written by another version of the service
            continue
    return found


def read(store: CoordinationStore, vendors: Iterable[str]) -> Mapping[str, VendorHealth]:
    """The state of each vendor for readers: unknown when missing or stale."""
    slugs = list(vendors)
    stored = read_raw(store, slugs)
    now, interval_s = clock.now(), settings.HEALTH_PROBE_INTERVAL_S
    return {vendor: as_read(stored.get(vendor), now=now, interval_s=interval_s) for vendor in slugs}
