"""Rotation of the master key: data keys are wrapped again, credentials stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from credentials.models import OrganizationDataKey
from credentials.sealing import data_key_aad
from gateway.coordination import epochs
from gateway.keys.resealing import SealedRows, per_key_id
from gateway.lib.keyring import keyring


@dataclass(frozen=True, slots=True)
class KeyIdCount:
    """Number of data keys wrapped by one key; `configured`: the key is in CREDENTIAL_KEYS."""

    key_id: str
    rows: int
    configured: bool


def _tell_callers(rows: Sequence[OrganizationDataKey]) -> None:
    # Call paths hold the old wrapping, which opens only until the old key is removed.
    epochs.bump_on_commit(*{epochs.organization(row.organization_id) for row in rows})


DATA_KEYS = SealedRows(
    what="data keys",
    rows=OrganizationDataKey.objects.all,
    key_field="key_id",
    sealed_field="wrapped_key",
    aad=lambda row: data_key_aad(row.organization_id, row.version),
    on_change=_tell_callers,
)


def rows_per_key_id() -> list[KeyIdCount]:
    """Data keys per key id. A configured key id with zero rows may be removed."""
    known = keyring().keys
    counts = {**dict.fromkeys(known, 0), **per_key_id(DATA_KEYS)}
    return [KeyIdCount(key_id, rows, key_id in known) for key_id, rows in counts.items()]
