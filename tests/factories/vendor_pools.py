"""Transports to vendors at private addresses, and pools on them, with bounds that a test does not meet by chance."""

from __future__ import annotations

from typing import Any

from proxy.vendors.bulkhead import Bulkhead
from proxy.vendors.circuits import Circuits
from proxy.vendors.http1 import Limits
from proxy.vendors.pool import SessionPool
from proxy.vendors.transport import VendorTransport

LIMITS = Limits(connect_s=5.0, chunk_s=10.0, body_bytes=10 * 1024 * 1024)


def new_transport(*, limits: Limits = LIMITS, connections_per_origin: int = 100, **more: Any) -> VendorTransport:
    return VendorTransport(
        **{"allow_private": True, "limits": limits, "connections_per_origin": connections_per_origin, **more}
    )


def new_circuits(store: Any = None, **more: Any) -> Circuits:
    return Circuits(store, **{"trial_s": LIMITS.connect_s, "max_circuits": 1_000, **more})


def new_pool(
    transport: VendorTransport, *, idle_s: float = 60.0, bulkhead: Bulkhead | None = None, **more: Any
) -> SessionPool:
    bounds = {"max_sessions": 1_000, "max_awake": 1_000, "circuits": new_circuits(), **more}
    bulkhead = bulkhead or Bulkhead(calls=30, max_queued=100, wait_s=5.0)
    return SessionPool(transport, idle_s=idle_s, bulkhead=bulkhead, **bounds)
