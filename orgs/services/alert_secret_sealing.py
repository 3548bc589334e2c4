"""The secrets that sign an organization's alerts, sealed for its row; a key change seals them again."""

from __future__ import annotations

from uuid import UUID

import msgspec

from gateway.keys.current import sealing_keys
from gateway.keys.resealing import SealedRows
from gateway.lib.crypto import CryptoError
from gateway.lib.keyring import keyring
from orgs.models import AlertSettings


class Secrets(msgspec.Struct, omit_defaults=True):
    """Both in the form of Standard Webhooks. `previous`: empty, or that of before a rotation."""

    secret: str
    previous: str = ""


def seal_secrets(secrets: Secrets, org_id: UUID) -> tuple[str, bytes]:
    """Return the key id and the sealed secrets."""
    keys = sealing_keys()
    return keys.current_id, keys.wrap(msgspec.json.encode(secrets), _aad(org_id))


def secrets_of(row: AlertSettings) -> Secrets | None:
    """None if there are none, or they do not open."""
    if not row.secret_sealed:
        return None
    try:
        opened = keyring().unwrap(row.secret_key_id, bytes(row.secret_sealed), _aad(row.pk))
    except CryptoError:
        return None
    return msgspec.json.decode(opened, type=Secrets)


def _aad(org_id: UUID) -> bytes:
    return f"alert-settings|{org_id}".encode()


SECRETS = SealedRows(
    what="secrets of alert webhooks",
    rows=AlertSettings.objects.exclude(secret_sealed=b"").all,
    key_field="secret_key_id",
    sealed_field="secret_sealed",
    aad=lambda row: _aad(row.pk),
)
