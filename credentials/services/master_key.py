"""Rotation of the master key: data keys are wrapped again, credentials stay as they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

import structlog
from django.db import transaction
from django.db.models import Count

from credentials.models import OrganizationDataKey
from credentials.sealing import data_key_aad
from gateway.coordination import epochs
from gateway.lib.crypto import CryptoError
from gateway.lib.keyring import keyring

log = structlog.get_logger(__name__)
# Rows per transaction: bounds how long their locks are held.
BATCH_SIZE = 200


@dataclass(frozen=True, slots=True)
class KeyIdCount:
    """Number of data keys wrapped by one key; `configured`: the key is in CREDENTIAL_KEYS."""

    key_id: str
    rows: int
    configured: bool


@dataclass(frozen=True, slots=True)
class RewrappedBatch:
    """One committed batch. `failed`: (organization id, version) of the data keys that do not open."""

    rewrapped: int
    failed: tuple[tuple[UUID, int], ...]


def rows_per_key_id() -> list[KeyIdCount]:
    """Data keys per key id. A configured key id with zero rows may be removed."""
    keys = keyring()
    counted = OrganizationDataKey.objects.order_by("key_id").values_list("key_id").annotate(rows=Count("pk"))
    counts = {**dict.fromkeys(keys.keys, 0), **dict(counted)}
    return [KeyIdCount(key_id, rows, key_id in keys.keys) for key_id, rows in counts.items()]


def rewrap_data_keys(*, batch_size: int = BATCH_SIZE) -> Iterator[RewrappedBatch]:
    """Wrap every data key under the current key id; each batch is committed when yielded. Spec: D68 · reliability.md 4

    An interrupted run loses nothing, and the next run continues. Calls go on while old and new key are configured.
    """
    after_pk = 0
    while True:
        batch, after_pk, found = _rewrap_batch(after_pk, batch_size)
        if not found:
            return
        yield batch


@transaction.atomic
def _rewrap_batch(after_pk: int, size: int) -> tuple[RewrappedBatch, int, int]:
    """The batch, the primary key of its last row, and the number of rows read."""
    keys = keyring()
    # Rows that fail are behind `after_pk` afterwards and are not read again.
    left = OrganizationDataKey.objects.select_for_update().exclude(key_id=keys.current_id)
    rows = list(left.filter(pk__gt=after_pk).order_by("pk")[:size])
    failed = []
    changed = []
    for row in rows:
        aad = data_key_aad(row.organization_id, row.version)
        try:
            data_key = keys.unwrap(row.key_id, bytes(row.wrapped_key), aad)
        except CryptoError as fault:
            failed.append((row.organization_id, row.version))
            log.error(
                "data_key_unusable",
                organization_id=str(row.organization_id),
                version=row.version,
                key_id=row.key_id,
                reason=str(fault),
            )
            continue
        row.wrapped_key, row.key_id = keys.wrap(data_key, aad), keys.current_id
        changed.append(row)
    OrganizationDataKey.objects.bulk_update(changed, ["wrapped_key", "key_id"])
    if changed:
        # Call paths hold the old wrapping, which opens only until the old key is removed.
        epochs.bump_on_commit(*{epochs.organization(row.organization_id) for row in changed})
    return RewrappedBatch(len(changed), tuple(failed)), rows[-1].pk if rows else after_pk, len(rows)
