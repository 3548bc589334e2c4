"""Each second one web process of the deployment relays epoch bumps that others could not send: one indexed query."""

from __future__ import annotations

import asyncio
from functools import partial

import structlog

from gateway.coordination import outbox
from gateway.coordination.store import CoordinationStore, CoordinationUnavailable
from proxy.snapshot import Snapshots, SnapshotUnavailable

EVERY_S = 1.0
log = structlog.get_logger(__name__)


async def keep_relaying(store: CoordinationStore, snapshots: Snapshots) -> None:
    """Relay until cancelled."""
    while True:
        try:
            await relay_if_leader(store, snapshots)
        except Exception:  # the next round may do better; without one, revocations would wait for other processes
            log.exception("outbox not relayed")
        await asyncio.sleep(EVERY_S)


async def relay_if_leader(store: CoordinationStore, snapshots: Snapshots) -> int:
    """Relay. Returns the number of bumps. None while the store is away: a process that finds it back relays first."""
    try:
        leads = await store.admit(outbox.LEADER, "leader", ())
        if not leads.allowed or leads.epochs is None:
            return 0
        return await snapshots.run_behind(partial(outbox.relay, store))
    except (CoordinationUnavailable, SnapshotUnavailable) as fault:
        log.warning("outbox not relayed", fault=str(fault))
        return 0
