"""Scheduled tasks."""

from __future__ import annotations

import structlog
from celery import shared_task

logger = structlog.get_logger(__name__)


@shared_task(name="billing.mirror")  # type: ignore[untyped-decorator]
def mirror() -> int:
    """Copies what changed at the provider. Returns the number of events."""
    from billing.mirror import runs  # dj-stripe is loaded in BILLING_MODE=stripe only

    return runs.copy_new_events()


@shared_task(name="billing.mirror_customers")  # type: ignore[untyped-decorator]
def mirror_customers(after: str = "") -> None:
    """Copies all customers, a part in each message: the worker has other tasks."""
    from billing.mirror import runs

    if last := runs.copy_customers(after):
        mirror_customers.delay(last)
    elif removed := runs.remove_strangers():
        logger.info("billing.mirror_removed", customers=removed)
