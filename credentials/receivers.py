from __future__ import annotations

from typing import Any

from django.dispatch import receiver

from credentials.services.shredding import shred_organization
from orgs.events import organization_deleting
from orgs.models import Organization


@receiver(organization_deleting, dispatch_uid="credentials.shred")
def shred(sender: object, organization: Organization, **more: Any) -> None:
    """Spec: D37, D139"""
    # Destroy the data keys before the rows go, so that copies of the rows stay sealed.
    shred_organization(organization.id)
