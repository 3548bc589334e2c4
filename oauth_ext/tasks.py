"""Scheduled tasks."""

from __future__ import annotations

from dataclasses import asdict

import structlog
from celery import shared_task

from gateway.lib import clock
from oauth_ext.services.cleanup import remove_expired_rows

log = structlog.get_logger(__name__)


@shared_task(name="oauth_ext.remove_expired_tokens")  # type: ignore[untyped-decorator]
def remove_expired_tokens() -> None:
    # Running twice, or not for a day, does no harm.
    log.info("expired rows removed", **asdict(remove_expired_rows(now=clock.now())))
