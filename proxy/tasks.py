"""Scheduled work of the proxy: looking after vendors."""

from __future__ import annotations

import asyncio

import structlog
from celery import shared_task

from gateway.coordination import registry
from proxy.health.monitor import run_round
from proxy.health.turns import is_our_turn, vendors_to_probe

log = structlog.get_logger(__name__)


@shared_task(name="proxy.probe_vendors")  # type: ignore[untyped-decorator]
def probe_vendors() -> None:
    """One round over the vendors that some organization connected. However many workers and schedulers run, the first
    of them in an interval leads and the others leave it alone.   Spec: §3 · D131
    """
    store = registry.current()
    if not is_our_turn(store):
        return
    found = asyncio.run(run_round(store, vendors_to_probe()))
    log.info("vendors probed", states={slug: health.status.value for slug, health in found.items()})
