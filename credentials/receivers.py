"""What happens elsewhere that credentials must take part in."""

from __future__ import annotations

from typing import Any

from django.dispatch import receiver

from credentials.services.shredding import shred_organization
from orgs.events import organization_deleting
from orgs.models import Organization


@receiver(organization_deleting, dispatch_uid="credentials.shred")
def shred(sender: object, organization: Organization, **more: Any) -> None:
    """Before the rows go, what opens their copies is destroyed. Spec: D37, D139"""
    shred_organization(organization.id)
