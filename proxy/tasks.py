"""Scheduled tasks of the proxy."""

from __future__ import annotations

import asyncio

import structlog
from celery import shared_task

from gateway.coordination import backend
from gateway.coordination.rules import Rule
from gateway.status.incidents import publish
from gateway.status.samples import EVERY_S
from proxy.control_plane.alerts import delivery, listing
from proxy.control_plane.alerts.watch import watch
from proxy.control_plane.health.leader import claim_round, vendors_to_probe
from proxy.control_plane.health.monitor import run_round
from proxy.control_plane.status_samples import take_samples

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


@shared_task(name="proxy.record_status")  # type: ignore[untyped-decorator]
def record_status() -> None:
    """A sample of each part of the status page; the open incidents are told to every process."""
    store = backend.current()
    # Of all workers and schedulers, the first in an interval leads.
    if store.hit(Rule("status-samples", limit=1, window_s=int(EVERY_S) - 5), "leader").allowed:
        take_samples(store)
    publish()


@shared_task(name="proxy.watch_alerts")  # type: ignore[untyped-decorator]
def watch_alerts(is_slow: bool = False) -> int:
    """Returns the number of messages that were queued. Spec: D166"""
    return watch(is_slow=is_slow)


# Acknowledged early: claims in the database do what a repeated message would.
@shared_task(name="proxy.deliver_alerts", acks_late=False)  # type: ignore[untyped-decorator]
def deliver_alerts() -> int:
    """Returns the number of messages to webhooks that have ended."""
    return delivery.deliver_waiting()


@shared_task(name="proxy.remove_old_alerts")  # type: ignore[untyped-decorator]
def remove_old_alerts() -> int:
    return listing.remove_old()
