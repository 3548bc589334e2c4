"""Scheduled tasks."""

from __future__ import annotations

from datetime import timedelta

import structlog
from celery import shared_task
from django.conf import settings

from audit.retention import remove_older_than
from gateway.lib import clock

logger = structlog.get_logger(__name__)


@shared_task(name="audit.prune_request_log")  # type: ignore[untyped-decorator]
def prune_request_log() -> int:
    """Returns the number of removed rows; the admin log is kept. Spec: D87"""
    before = clock.now() - timedelta(days=settings.AUDIT_RETENTION_DAYS)
    done = remove_older_than(before)
    logger.info("audit.request_log_pruned", removed=done.removed, before=clock.rfc3339(before))
    if done.oldest_left is not None:
        logger.warning(
            "audit.request_log_not_pruned",
            organizations=done.organizations_left,
            oldest=clock.rfc3339(done.oldest_left),
        )
    return done.removed
