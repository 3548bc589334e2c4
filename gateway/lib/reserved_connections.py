"""Database connections reserved for the hot path: slow or many pages leave these to calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import connections

from gateway.lib.session_timeouts import SessionTimeouts, with_timeouts


def use_reserved_connections(size: int, timeouts: SessionTimeouts) -> None:
    """Initializer for a ThreadPoolExecutor. Does nothing on a database without a pool."""
    entry = connections["default"].settings_dict
    if not entry["OPTIONS"].get("pool"):
        return
    from gateway.lib.bounded_connection import ReservedWrapper

    connections["default"] = ReservedWrapper(reserved_entry(entry, size, timeouts), "default")


def close_reserved_connections() -> None:
    if connections["default"].settings_dict["OPTIONS"].get("pool"):
        from gateway.lib.bounded_connection import ReservedWrapper

        while ReservedWrapper._connection_pools:
            ReservedWrapper._connection_pools.popitem()[1].close()


def reserved_entry(entry: Mapping[str, Any], size: int, timeouts: SessionTimeouts) -> dict[str, Any]:
    from gateway.lib.bounded_connection import bounded

    reserved = with_timeouts(entry, timeouts)
    pool = entry["OPTIONS"]["pool"]
    own = {
        "min_size": min(1, pool["min_size"]),
        "max_size": size,
        "connection_class": bounded(timeouts.response_timeout_s),
    }
    reserved["OPTIONS"] = {**reserved["OPTIONS"], "pool": {**pool, **own}}
    return reserved
