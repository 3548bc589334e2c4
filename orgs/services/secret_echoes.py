"""Admin log of stored credentials that a vendor's tool sent back: once per tool and hour."""

from __future__ import annotations

import uuid
from datetime import timedelta

from django.db import transaction

from audit.actor import Actor, Target
from audit.admin_log import record_admin
from audit.event_types import EventType
from audit.models import AdminAuditEntry
from gateway.lib import clock
from gateway.lib.errors import NotFound
from orgs.locking import lock_organization

# One tool is recorded once in this time.
WINDOW = timedelta(hours=1)
# Rows per vendor and window: a vendor with thousands of such tools cannot fill the log.
RECORDED_PER_WINDOW = 20


def record_echo(*, org_id: uuid.UUID, vendor: str, tool: str, actor: Actor) -> bool:
    """Write the row unless any process has recorded this tool within WINDOW; return whether it did."""
    with transaction.atomic():
        try:
            lock_organization(org_id)
        except NotFound:
            return False
        rows = AdminAuditEntry.objects.filter(org_id=org_id, timestamp__gt=clock.now() - WINDOW)
        rows = rows.filter(event_type=EventType.VENDOR_SECRET_ECHOED, target_id=vendor)
        recent = list(rows.values_list("metadata", flat=True)[:RECORDED_PER_WINDOW])
        if len(recent) == RECORDED_PER_WINDOW or any(each.get("tool") == tool for each in recent):
            return False
        record_admin(
            EventType.VENDOR_SECRET_ECHOED,
            org_id=org_id,
            actor=actor,
            target=Target(id=vendor, label=vendor),
            metadata={"vendor": vendor, "tool": tool},
        )
        return True
