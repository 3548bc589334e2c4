"""Scheduled tasks of the proxy."""

from __future__ import annotations

import asyncio

import structlog
from celery import shared_task

from gateway.coordination import backend
from proxy.control_plane.health.leader import claim_round, vendors_to_probe
from proxy.control_plane.health.monitor import run_round

log = structlog.get_logger(__name__)


@shared_task(name="proxy.probe_vendors")  # type: ignore[untyped-decorator]
def probe_vendors() -> None:
    """One health round over the connected vendors. Spec: §3 · D131"""
    store = backend.current()
    # Of all workers and schedulers, the first in an interval leads.
    if not claim_round(store):
        return
    found = asyncio.run(run_round(store, vendors_to_probe()))
    log.info("vendors probed", states={slug: health.status.value for slug, health in found.items()})
