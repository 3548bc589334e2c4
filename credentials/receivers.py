from __future__ import annotations

from typing import Any

from django.db.models.signals import post_delete
from django.dispatch import receiver

from credentials.models import Credential
from credentials.services.shredding import shred_organization
from gateway.lib.revocation_journal import End, EndKind, note
from orgs.events import organization_deleting
from orgs.models import Organization


@receiver(organization_deleting, dispatch_uid="credentials.shred")
def shred(sender: object, organization: Organization, **more: Any) -> None:
    """Spec: D37, D139"""
    # Destroy the data keys before the rows go, so that copies of the rows stay sealed.
    shred_organization(organization.id)


@receiver(post_delete, sender=Credential, dispatch_uid="credentials.credential_ended")
def note_credential(sender: object, instance: Credential, **more: Any) -> None:
    note(End(EndKind.CREDENTIAL, str(instance.pk), str(instance.organization_id)))
