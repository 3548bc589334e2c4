"""Queries of the admin log, each within one organization."""

from __future__ import annotations

import uuid

from django.db.models import QuerySet

from audit.admin_filters import TEXTS, AdminFilters
from audit.distinct_values import labelled_values
from audit.models import AdminAuditEntry
from audit.selectors import KnownUser, in_period


def matching_admin_entries(org_id: uuid.UUID, *, filters: AdminFilters) -> QuerySet[AdminAuditEntry]:
    """Returns the matching rows in no order."""
    rows = AdminAuditEntry.objects.filter(org_id=org_id)
    rows = rows.filter(**{name: value for name in TEXTS if (value := getattr(filters, name))})
    return in_period(rows, filters.start_at, filters.end_before)


def known_actors(org_id: uuid.UUID) -> list[KnownUser]:
    """Sorted by label; removed people and background jobs are included."""
    return [KnownUser(*each) for each in labelled_values(AdminAuditEntry, org_id, "actor_id", "actor_label")]
