from __future__ import annotations

from typing import Any

from django.db.models.signals import post_delete, pre_delete
from django.dispatch import receiver

from credentials.models import Credential, VendorConnection
from credentials.services.shredding import shred_organization
from credentials.services.vendor_connections import end_connections
from credentials.services.vendor_revocations import note_revocation
from gateway.lib.revocation_journal import End, EndKind, note
from orgs.events import organization_deleting
from orgs.models import Organization


@receiver(organization_deleting, dispatch_uid="credentials.shred")
def shred(sender: object, organization: Organization, **more: Any) -> None:
    """Spec: D37, D139"""
    # While their tokens can be opened: the vendors are told.
    end_connections(organization.id)
    # Destroy the data keys before the rows go, so that copies of the rows stay sealed.
    shred_organization(organization.id)


@receiver(pre_delete, sender=VendorConnection, dispatch_uid="credentials.vendor_connection_ending")
def revoke_at_vendor(sender: object, instance: VendorConnection, **more: Any) -> None:
    """Also when it goes together with a member or a credential."""
    note_revocation(instance)


@receiver(post_delete, sender=VendorConnection, dispatch_uid="credentials.vendor_connection_ended")
@receiver(post_delete, sender=Credential, dispatch_uid="credentials.credential_ended")
def note_credential(sender: object, instance: Credential | VendorConnection, **more: Any) -> None:
    # The organization's connection has the id of its credential, which stays where a key takes its place.
    if isinstance(instance, Credential) or instance.membership_id is not None:
        note(End(EndKind.CREDENTIAL, str(instance.pk), str(instance.organization_id)))
