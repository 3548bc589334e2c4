from __future__ import annotations

import uuid
from functools import cache
from typing import TYPE_CHECKING

from django.conf import settings

from gateway.coordination.fallback_store import FallbackStore
from gateway.coordination.store import CoordinationStore

if TYPE_CHECKING:
    from gateway.coordination.blob_store import BlobStore
    from gateway.coordination.exchange import Exchange


def new_value() -> str:
    return uuid.uuid4().hex


def uses_outbox() -> bool:
    """True with Redis, which may fail while the database works; the SQLite file is on this host."""
    return bool(settings.REDIS_URL)


def is_away() -> bool:
    """Whether Redis is known not to answer. Asks it nothing; always False without Redis."""
    store = current()
    return isinstance(store, FallbackStore) and store.is_away()


@cache
def current() -> CoordinationStore:
    """The process's store: Redis at REDIS_URL, or without it the SQLite file of the host."""
    # Only the library in use is imported: redis takes 6 MB, sqlite3 one.
    if settings.REDIS_URL:
        from gateway.coordination.outbox import DatabaseOutbox
        from gateway.coordination.redis_store import RedisStore

        store = RedisStore(settings.REDIS_URL, new_value, _prefix(), is_cluster=settings.REDIS_CLUSTER)
        return FallbackStore(store, processes=settings.DEPLOYMENT_PROCESSES, outbox=DatabaseOutbox())
    from gateway.coordination.sqlite_store import SQLiteStore

    return SQLiteStore(settings.VAR / "coordination.sqlite3", new_value)


def blob_store() -> BlobStore | None:
    """A new store of values for the running event loop; None without Redis."""
    if not settings.REDIS_URL:
        return None
    from gateway.coordination.blob_store import BlobStore

    return BlobStore(settings.REDIS_URL, _prefix())


def exchange() -> Exchange:
    """A new exchange for the running event loop."""
    if settings.REDIS_URL:
        from gateway.coordination.redis_exchange import RedisExchange

        return RedisExchange(settings.REDIS_URL, _prefix())
    from gateway.coordination.sqlite_exchange import SQLiteExchange

    return SQLiteExchange(settings.VAR / "exchange.sqlite3")


def _prefix() -> str:
    return getattr(settings, "COORDINATION_PREFIX", "gateway:")
