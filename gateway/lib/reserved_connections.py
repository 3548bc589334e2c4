"""A few database connections for the hot path alone: pages that are slow or many keep no call from its rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import connections

from gateway.lib.session_timeouts import SessionTimeouts, with_timeouts


def use_reserved_connections(size: int, timeouts: SessionTimeouts) -> None:
    """From now on this thread's connections come from a pool of `size` of their own.

    For the initializer of a ThreadPoolExecutor. On a database without a pool nothing changes.
    """
    entry = connections["default"].settings_dict
    if not entry["OPTIONS"].get("pool"):
        return
    from gateway.lib.bounded_connection import ReservedWrapper

    connections["default"] = ReservedWrapper(reserved_entry(entry, size, timeouts), "default")


def close_reserved_connections() -> None:
    """The reserved pool of this process is closed, if it was ever used; the next use opens another."""
    if connections["default"].settings_dict["OPTIONS"].get("pool"):
        from gateway.lib.bounded_connection import ReservedWrapper

        while ReservedWrapper._connection_pools:
            ReservedWrapper._connection_pools.popitem()[1].close()


def reserved_entry(entry: Mapping[str, Any], size: int, timeouts: SessionTimeouts) -> dict[str, Any]:
    """The entry of DATABASES for a pool of `size` whose sessions have these timeouts."""
    from gateway.lib.bounded_connection import bounded

    reserved = with_timeouts(entry, timeouts)
    pool = entry["OPTIONS"]["pool"]
    own = {"min_size": min(1, pool["min_size"]), "max_size": size, "connection_class": bounded(timeouts.answer_s)}
    reserved["OPTIONS"] = {**reserved["OPTIONS"], "pool": {**pool, **own}}
    return reserved
