"""Access requests that end without a decision, because nothing is left to decide."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from uuid import UUID

from django.db.models import QuerySet

from gateway.lib import clock
from orgs.models import AccessRequest
from orgs.server_access_reasons import effective_server_access_of

# How long the person who asked sees a decision.
KEPT_AFTER_DECISION = timedelta(days=30)


def end_answered_requests(organization_id: UUID) -> None:
    """End the waiting requests for a vendor that their member may use by now. The caller holds the lock."""
    waiting = list(_waiting(organization_id).select_related("membership__organization"))
    if not waiting:
        return
    asked = sorted({row.vendor for row in waiting})
    access = effective_server_access_of(list({row.membership for row in waiting}), asked)
    given = {(key, reason.vendor) for key, reasons in access.items() for reason in reasons}
    answered = [row.pk for row in waiting if (row.membership_id, row.vendor) in given]
    AccessRequest.objects.filter(pk__in=answered).delete()


def end_requests_for_disconnected(organization_id: UUID, connected_vendors: Collection[str]) -> None:
    """End the waiting requests for all other vendors. The caller holds the lock."""
    _waiting(organization_id).exclude(vendor__in=connected_vendors).delete()


def remove_old_decisions() -> int:
    rows = AccessRequest.objects.filter(decided_at__lte=clock.now() - KEPT_AFTER_DECISION)
    return rows.delete()[0]


def _waiting(organization_id: UUID) -> QuerySet[AccessRequest]:
    return AccessRequest.objects.filter(organization_id=organization_id, state=AccessRequest.State.WAITING)
