from __future__ import annotations

from uuid import UUID

import structlog
from django.db import transaction

from credentials.models import OrganizationDataKey
from credentials.sealing import DATA_KEYS
from gateway.coordination import epochs

log = structlog.get_logger(__name__)


@transaction.atomic
def shred_organization(organization_id: UUID) -> int:
    """Destroy the organization's data keys and return their number. Spec: D37, D139"""
    # Runs in the transaction that deletes the organization, before its rows go. Afterwards no copy of a credential
    # row opens, except together with a backup of the key table.
    destroyed, _ = OrganizationDataKey.objects.filter(organization_id=organization_id).delete()
    # After the commit: until then a call may open its credential and cache the key again.
    transaction.on_commit(lambda: DATA_KEYS.forget(organization_id))
    # Other processes drop their copies when they see the new epoch.
    epochs.bump_on_commit(epochs.organization(organization_id))
    log.warning("data_keys_destroyed", organization_id=str(organization_id), count=destroyed)
    return destroyed
