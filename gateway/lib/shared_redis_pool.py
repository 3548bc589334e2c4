"""The connections of Django's Redis cache, shared by all requests of a process."""

from __future__ import annotations

from functools import cache
from typing import Any

from redis import ConnectionPool


class SharedRedisPool:
    """One pool for each address and set of options.

    Django makes a cache object for each request of an ASGI server, and each object asks for a pool: without this class
    every page would open a connection of its own.
    """

    @staticmethod
    def from_url(url: str, **options: Any) -> ConnectionPool:
        return _pool(url, **options)


@cache
def _pool(url: str, **options: Any) -> ConnectionPool:
    return ConnectionPool.from_url(url, **options)
