"""Scheduled tasks."""

from __future__ import annotations

from dataclasses import asdict

import structlog
from celery import shared_task

from gateway.lib import clock
from oauth_ext.models import ServiceClientVendor
from oauth_ext.services.cleanup import remove_expired_rows
from orgs.services.server_access_ends import remove_ended_everywhere

log = structlog.get_logger(__name__)


@shared_task(name="oauth_ext.remove_expired_tokens")  # type: ignore[untyped-decorator]
def remove_expired_tokens() -> None:
    # Running twice, or not for a day, does no harm.
    log.info("expired rows removed", **asdict(remove_expired_rows(now=clock.now())))


@shared_task(name="oauth_ext.remove_ended_access")  # type: ignore[untyped-decorator]
def remove_ended_access() -> int:
    """As the task of `orgs`, for the vendor lists of service clients."""
    return remove_ended_everywhere(ServiceClientVendor.objects.select_related("client"), "client__organization_id")
