"""Ends of server access: the check of a new end, and the removal of rows that have ended."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction

from audit.actor import system
from audit.admin_log import AdminEvent, record_admin_rows
from audit.event_types import EventType
from gateway.lib import clock
from gateway.lib.errors import Invalid, NotFound
from gateway.lib.sentences import sentence
from orgs.locking import lock_organization
from orgs.models.server_access import EndingQuerySet

MAX_DAYS = 3_650
# Organizations of one round of the removal.
ORGANIZATIONS_AT_ONCE = 500


def checked_end(expires_at: datetime | None, now: datetime) -> datetime | None:
    """The end in whole milliseconds. Raises: Invalid for a time that has passed or is too far away. Spec: D169"""
    if expires_at is None:
        return None
    end = clock.whole_milliseconds(expires_at)
    if end <= now:
        raise Invalid(fields={"expiresAt": [sentence("Must be in the future.")]})
    if end > now + timedelta(days=MAX_DAYS):
        raise Invalid(fields={"expiresAt": [sentence("Must be within %(max_days)s days.", max_days=MAX_DAYS)]})
    return end


def remove_ended(rows: EndingQuerySet[Any], organization_id: UUID) -> int:
    """Delete and record the rows that have ended. The caller holds the organization's lock.

    Every loaded caller knows the ends of its access, so no epoch is bumped.
    """
    ended = list(rows.ended(clock.now()))
    if ended:
        rows.model._default_manager.filter(pk__in=[row.pk for row in ended]).delete()
        events = [
            AdminEvent(
                EventType.SERVER_ACCESS_EXPIRED,
                row.as_target(),
                {"vendor": row.vendor, "expiresAt": clock.rfc3339(row.expires_at)},
            )
            for row in ended
        ]
        record_admin_rows(events, org_id=organization_id, actor=system(sentence("vendor access")))
    return len(ended)


def remove_ended_everywhere(rows: EndingQuerySet[Any], organization_column: str) -> int:
    """As `remove_ended`, in one transaction for each organization. `organization_column`: its path from a row."""
    ended = rows.ended(clock.now()).order_by(organization_column)
    found = ended.values_list(organization_column, flat=True).distinct()[:ORGANIZATIONS_AT_ONCE]
    return sum(_remove_in(rows, organization_column, organization_id) for organization_id in list(found))


@transaction.atomic
def _remove_in(rows: EndingQuerySet[Any], organization_column: str, organization_id: UUID) -> int:
    try:
        lock_organization(organization_id)
    except NotFound:  # deleted meanwhile, with its rows
        return 0
    return remove_ended(rows.filter(**{organization_column: organization_id}), organization_id)
