"""Scheduled tasks."""

from __future__ import annotations

from celery import shared_task

from credentials.services.vendor_revocations import send_revocations
from credentials.services.vendor_sign_ins import remove_expired


@shared_task(name="credentials.revoke_at_vendors", acks_late=False)  # type: ignore[untyped-decorator]
def revoke_at_vendors() -> int:
    """Vendors learn of ended connections. Sign-ins that nobody finished go, too."""
    remove_expired()
    return send_revocations()
