"""Health states in the coordination store: written by the monitor, read by every process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
from django.conf import settings

from gateway.coordination.store import CoordinationStore
from gateway.lib import clock
from proxy.health.states import INTERVALS_UNTIL_STALE, UNKNOWN, VendorHealth, as_read

__all__ = ["UNKNOWN", "read", "read_raw", "write"]

_decoder = msgspec.json.Decoder(VendorHealth)


def write(store: CoordinationStore, vendor: str, health: VendorHealth) -> None:
    """Keep the state as long as anybody would believe it, and a little more for the count of failures."""
    ttl_s = (INTERVALS_UNTIL_STALE + 2) * settings.HEALTH_PROBE_INTERVAL_S
    store.put_health(vendor, msgspec.json.encode(health), ttl_s)


def read_raw(store: CoordinationStore, vendors: Iterable[str]) -> dict[str, VendorHealth]:
    """The states as the monitor left them; a state that cannot be read counts as none."""
    found: dict[str, VendorHealth] = {}
    for vendor, raw in store.health(list(vendors)).items():
        try:
            found[vendor] = _decoder.decode(raw)
        except msgspec.ValidationError:  # written by another version of the service
            continue
    return found


def read(store: CoordinationStore, vendors: Iterable[str]) -> Mapping[str, VendorHealth]:
    """The state of each vendor as a reader is told it: unknown when nothing is known or it is too old."""
    asked = list(vendors)
    stored = read_raw(store, asked)
    now, interval_s = clock.now(), settings.HEALTH_PROBE_INTERVAL_S
    return {vendor: as_read(stored.get(vendor), now=now, interval_s=interval_s) for vendor in asked}
