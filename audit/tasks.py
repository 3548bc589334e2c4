"""Scheduled tasks."""

from __future__ import annotations

import time
from datetime import timedelta
from uuid import UUID

import structlog
from celery import shared_task
from django.conf import settings

from audit import partitions
from audit.retention import prune
from audit.seals import BATCH_ROWS, CURSOR, seal_next
from audit.shipping.claims import claim_due
from audit.shipping.delivery import deliver
from audit.shipping.results import CLAIMED_FOR, prune_hours
from audit.stream import Log, finish_all_stale_rows, first_waiting
from audit.usage.ready_days import make_ready
from audit.usage.removal import remove_usage_of_deleted_organizations
from audit.usage.rollup import roll_up_all
from gateway.lib import clock

STALLED_AFTER = timedelta(minutes=30)  # a row whose process died becomes final after ten
LONGEST_SEALING_S = 20.0  # the worker has other tasks; the next minute takes the rest
logger = structlog.get_logger(__name__)


@shared_task(name="audit.prune_request_log")  # type: ignore[untyped-decorator]
def prune_request_log() -> int:
    """Returns the number of rows removed one by one; the admin log is kept. Spec: D87"""
    before = clock.now() - timedelta(days=settings.AUDIT_RETENTION_DAYS)
    done = prune(before)
    logger.info("audit.request_log_pruned", removed=done.removed, dropped=done.dropped, before=clock.rfc3339(before))
    if done.oldest_left is not None:
        logger.warning(
            "audit.request_log_not_pruned",
            organizations=done.organizations_left,
            oldest=clock.rfc3339(done.oldest_left),
        )
    return done.removed


@shared_task(name="audit.make_partitions")  # type: ignore[untyped-decorator]
def make_partitions() -> int:
    """Makes the partitions of the months ahead. Returns their number."""
    if not partitions.is_partitioned():
        return 0
    made = partitions.make_ahead(clock.now())
    if made:
        logger.info("audit.partitions_made", names=made)
    if rows := partitions.default_rows():
        logger.warning("audit.rows_without_a_partition", rows=rows)
    return len(made)


@shared_task(name="audit.seal_logs")  # type: ignore[untyped-decorator]
def seal_logs() -> int:
    """Seals what is new in both logs, until the time is up. Returns the number of rows."""
    stop_at = time.monotonic() + LONGEST_SEALING_S
    finish_all_stale_rows(lambda: time.monotonic() < stop_at)
    sealed = 0
    for log in Log:
        rows = BATCH_ROWS
        while rows == BATCH_ROWS and time.monotonic() < stop_at:
            rows = seal_next(log)
            sealed += rows
        _warn_of_a_stalled_stream(log)
    return sealed


def _warn_of_a_stalled_stream(log: Log) -> None:
    """One transaction that stays open anywhere in the database's cluster holds all consumers back."""
    oldest = first_waiting(CURSOR, log)
    if oldest is not None and clock.now() - oldest.timestamp > STALLED_AFTER:
        logger.warning("audit.stream_stalled", log=log.value, oldest=clock.rfc3339(oldest.timestamp))


@shared_task(name="audit.roll_up_usage")  # type: ignore[untyped-decorator]
def roll_up_usage() -> int:
    """Returns the number of rows that were rolled up. Spec: §2 Usage aggregates"""
    rows = roll_up_all()
    make_ready()
    return rows


@shared_task(name="audit.remove_usage")  # type: ignore[untyped-decorator]
def remove_usage() -> int:
    """Returns the number of removed roll-ups of deleted organizations. Spec: D151"""
    return remove_usage_of_deleted_organizations()


# Acknowledged early: claims in the database do what a repeated message would, and a worker that loses Redis while it
# has not acknowledged a message ends.
@shared_task(name="audit.ship_logs", acks_late=False)  # type: ignore[untyped-decorator]
def ship_logs() -> int:
    """Starts a delivery for each destination that has records waiting and a slot. Returns their number. Spec: D98"""
    claimed = claim_due()
    for destination_id, claim in claimed:
        # A message that is lost costs the time of the claim, and no record.
        deliver_logs.apply_async(args=[str(destination_id), str(claim)], expires=CLAIMED_FOR.total_seconds())
    return len(claimed)


@shared_task(name="audit.deliver_logs", acks_late=False)  # type: ignore[untyped-decorator]
def deliver_logs(destination_id: str, claim: str) -> int:
    """Returns the number of records that were dealt with."""
    return deliver(UUID(destination_id), UUID(claim))


@shared_task(name="audit.prune_shipping")  # type: ignore[untyped-decorator]
def prune_shipping() -> int:
    """Returns the number of removed hours, of destinations and of organizations."""
    return prune_hours()
