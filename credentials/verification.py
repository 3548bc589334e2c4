"""Open every stored credential and drop the values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from uuid import UUID

from credentials.credential_scope import CredentialScope
from credentials.data_key_cache import DataKeyCache, WrappedKey
from credentials.errors import UnusableCredential, UnusableReason
from credentials.models import Credential
from credentials.resolve import CredentialRef
from credentials.sealing import open_fields, wrapped_keys
from credentials.selectors import ref

# Rows per fetch: bounds the memory of the command.
_CHUNK = 500


@dataclass(frozen=True, slots=True)
class VerificationResult:
    """One credential; `fault` is None if it opens."""

    organization_id: UUID
    credential_id: UUID
    vendor: str
    scope: CredentialScope
    fault: UnusableReason | None


def verify_credentials() -> Iterator[VerificationResult]:
    """Every credential of every organization, opened with the stored keys and CREDENTIAL_KEYS only."""
    rows = Credential.objects.order_by("organization_id", "vendor", "id").iterator(chunk_size=_CHUNK)
    for organization_id, credentials in groupby(rows, key=lambda row: row.organization_id):
        wrapped = wrapped_keys(organization_id)
        # A cache of its own: a key that this process remembers proves nothing about the stored one.
        cache = DataKeyCache(max_entries=len(wrapped))
        for row in credentials:
            scope = CredentialScope(row.scope)
            yield VerificationResult(
                organization_id, row.id, row.vendor, scope, _fault(organization_id, ref(row), wrapped, cache)
            )


def _fault(
    organization_id: UUID, sealed: CredentialRef, wrapped: Sequence[WrappedKey], cache: DataKeyCache
) -> UnusableReason | None:
    try:
        open_fields(sealed, organization_id=organization_id, wrapped=wrapped, cache=cache)
    except UnusableCredential as unusable:
        return unusable.reason
    return None
