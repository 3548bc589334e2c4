"""Crypto-shredding: the end of an organization's data keys."""

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
    """No credential of the organization opens any more, wherever a copy of its row lies; how many keys were destroyed.

    For the transaction that deletes the organization, before its rows go. Other processes follow with the epoch.
    Copies of the key table itself, such as database backups that hold it, are outside its reach.   Spec: D37, D139
    """
    destroyed, _ = OrganizationDataKey.objects.filter(organization_id=organization_id).delete()
    # After the commit: until then a call may still open its credential and put the key back.
    transaction.on_commit(lambda: DATA_KEYS.forget(organization_id))
    epochs.bump_on_commit(epochs.organization(organization_id))
    log.warning("data_keys_destroyed", organization_id=str(organization_id), count=destroyed)
    return destroyed
