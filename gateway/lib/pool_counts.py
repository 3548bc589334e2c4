"""Connections of the pools to PostgreSQL that this process has opened, as psycopg counts them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import connections


@dataclass(frozen=True, slots=True)
class PoolCounts:
    """`pool`: `pages` (and `/api`, tokens, tasks) or `calls`. `waiting`: requests for a connection."""

    pool: str
    busy: int
    idle: int
    waiting: int


def pool_counts() -> list[PoolCounts]:
    """Nothing for a database without pools."""
    if not connections["default"].settings_dict["OPTIONS"].get("pool"):
        return []
    from django.db.backends.postgresql.base import DatabaseWrapper

    from gateway.lib.bounded_connection import ReservedWrapper

    # Django's own attribute, which its stubs do not have.
    pages: dict[str, Any] = vars(DatabaseWrapper)["_connection_pools"]
    pools = [("pages", pool) for pool in pages.values()]
    pools += [("calls", pool) for pool in ReservedWrapper._connection_pools.values()]
    found = []
    for name, pool in pools:
        stats = pool.get_stats()
        idle = stats.get("pool_available", 0)
        found.append(PoolCounts(name, stats.get("pool_size", 0) - idle, idle, stats.get("requests_waiting", 0)))
    return found
