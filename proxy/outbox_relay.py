"""Every second one web process of the deployment (the leader) sends epoch bumps that other processes could not send."""

from __future__ import annotations

from functools import partial

import structlog

from gateway.coordination import outbox
from gateway.coordination.store import CoordinationStore, CoordinationUnavailable
from gateway.lib.periodic import run_periodically
from proxy.caller_cache import CallerCache
from proxy.hot_path_database import DatabaseUnavailable

EVERY_S = 1.0
log = structlog.get_logger(__name__)


async def keep_relaying(store: CoordinationStore, caller_cache: CallerCache) -> None:
    await run_periodically(lambda: relay_if_leader(store, caller_cache), EVERY_S, "outbox not relayed")


async def relay_if_leader(store: CoordinationStore, caller_cache: CallerCache) -> int:
    """The number of bumps sent; 0 if another process leads or the store is unavailable."""
    try:
        leads = await store.admit(outbox.LEADER, "leader", ())
        if not leads.allowed or leads.epochs is None:
            return 0
        return await caller_cache.run_in_write_thread(partial(outbox.relay, store))
    # A process that finds the store again relays first.
    except (CoordinationUnavailable, DatabaseUnavailable) as fault:
        log.warning("outbox not relayed", fault=str(fault))
        return 0
