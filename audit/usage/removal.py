"""Removal of the roll-ups of deleted organizations: they are kept as long as the organization. Spec: D151"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable

from django.db.models import Model

from audit.event_types import EventType
from audit.models import AdminAuditEntry
from audit.organizations import organizations_of
from audit.retention import BATCH_ROWS, LONGEST_RUN_S
from audit.usage.row_ids import of_organization
from audit.usage_models import RollUp, UsageCount, UsageDay, UsageDuration, UsageLabel


def remove_usage_of_deleted_organizations(
    *, longest_run_s: float = LONGEST_RUN_S, monotonic: Callable[[], float] = time.monotonic
) -> int:
    """Returns the number of removed rows. Calls that ended after the deletion leave rows for the next run."""
    stop_at, removed = monotonic() + longest_run_s, 0
    # An organization with counters is found by its labels or days, which go last. A row that is rolled up in between,
    # and a process of the release before, which knows no days, leave one of the two.
    for org_id in {*organizations_of(UsageLabel), *organizations_of(UsageDay)}:
        for model in (UsageCount, UsageDuration, UsageDay, UsageLabel):
            while _is_deleted(org_id) and monotonic() < stop_at and (rows := _remove_batch(model, org_id)):
                removed += rows
    return removed


def _is_deleted(org_id: uuid.UUID) -> bool:
    # The admin log outlives the organization, and this app knows no other trace of its end.
    return AdminAuditEntry.objects.filter(org_id=org_id, event_type=EventType.ORGANIZATION_DELETED.value).exists()


def _remove_batch(model: type[Model], org_id: uuid.UUID) -> int:
    rows = model._default_manager.filter(org_id=org_id)
    if issubclass(model, (RollUp, UsageDay)):
        low, high = of_organization(org_id)
        rows = rows.filter(id__gte=low, id__lte=high)
    return model._default_manager.filter(pk__in=rows.values("pk")[:BATCH_ROWS]).delete()[0]
