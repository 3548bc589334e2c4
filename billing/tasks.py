"""Scheduled tasks."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

import structlog
from celery import shared_task

from billing import cancellations, lapses, provider_events, reconciliation
from gateway.lib import clock

log = structlog.get_logger(__name__)
# The worker has other tasks; the next message goes on.
LONGEST_RECONCILIATION_S = 200.0
LONGEST_CANCELLATION_S = 60.0
# The provider repeats an event for three days, and by hand for thirty.
UNCLAIMED_KEPT = timedelta(days=35)


@shared_task(name="billing.reconcile")  # type: ignore[untyped-decorator]
def reconcile() -> int:
    """Returns the number of organizations that were compared with the provider."""
    report = reconciliation.reconcile_all(
        reconciliation.due_customers(clock.now()), is_dry_run=False, is_time_left=_for(LONGEST_RECONCILIATION_S)
    )
    if report.asked or report.unasked:
        log.info("billing.reconciled", asked=report.asked, unasked=report.unasked, differences=len(report.differences))
    return report.asked


@shared_task(name="billing.cancel_subscriptions")  # type: ignore[untyped-decorator]
def cancel_subscriptions() -> int:
    """Returns the number of customers whose subscriptions have ended. Spec: D37"""
    return cancellations.cancel_due(_for(LONGEST_CANCELLATION_S))


@shared_task(name="billing.record_lapses")  # type: ignore[untyped-decorator]
def record_lapses() -> int:
    """Returns the number of grace periods that have run out since the last time. Spec: D39"""
    return lapses.record_lapses()


@shared_task(name="billing.prune_events")  # type: ignore[untyped-decorator]
def prune_events() -> int:
    """Returns the number of removed events, which no organization has claimed."""
    return provider_events.prune(clock.now() - UNCLAIMED_KEPT)


def _for(seconds: float) -> Callable[[], bool]:
    ends_s = time.monotonic() + seconds
    return lambda: time.monotonic() < ends_s
