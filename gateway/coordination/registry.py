"""Which coordination store this deployment uses."""

from __future__ import annotations

import uuid
from functools import cache

from django.conf import settings

from gateway.coordination.degrading import DegradingStore
from gateway.coordination.store import CoordinationStore


def new_value() -> str:
    """A value no epoch had before."""
    return uuid.uuid4().hex


def uses_outbox() -> bool:
    """Whether the store may be away while the database is not: the file of one host is there whenever the host is."""
    return bool(settings.REDIS_URL)


@cache
def current() -> CoordinationStore:
    """The store that REDIS_URL asks for, or the host's own file without it. One per process.

    The library of the other one is not loaded: redis takes 6 MB, sqlite3 one.
    """
    if settings.REDIS_URL:
        from gateway.coordination.outbox import DatabaseOutbox
        from gateway.coordination.redis_store import RedisStore

        prefix = getattr(settings, "COORDINATION_PREFIX", "gateway:")
        store = RedisStore(settings.REDIS_URL, new_value, prefix)
        return DegradingStore(store, processes=settings.DEPLOYMENT_PROCESSES, outbox=DatabaseOutbox())
    from gateway.coordination.sqlite_store import SQLiteStore

    return SQLiteStore(settings.VAR / "coordination.sqlite3", new_value)
