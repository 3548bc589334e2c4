from __future__ import annotations

from typing import Any

from django.dispatch import receiver

from billing.cancellations import request_cancellation
from orgs.events import organization_deleting
from orgs.models import Organization


@receiver(organization_deleting, dispatch_uid="billing.cancel")
def cancel(sender: object, organization: Organization, **more: Any) -> None:
    """Spec: D37"""
    request_cancellation(organization)
