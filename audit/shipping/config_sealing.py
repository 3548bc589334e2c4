"""The `config` of a destination, sealed for its row; a key change seals it again. Spec: D96"""

from __future__ import annotations

from uuid import UUID

import msgspec

from audit.shipping_models import LogDestination
from gateway.keys.current import sealing_keys
from gateway.keys.resealing import SealedRows
from gateway.lib.keyring import keyring


def seal_config(config: dict[str, str], *, org_id: UUID, destination_id: UUID) -> tuple[str, bytes]:
    """Returns the key id and the sealed configuration."""
    keys = sealing_keys()
    return keys.current_id, keys.wrap(msgspec.json.encode(config), _aad(org_id, destination_id))


def config_of(destination: LogDestination) -> dict[str, str]:
    """Raises: CryptoError."""
    aad = _aad(destination.org_id, destination.pk)
    opened = keyring().unwrap(destination.config_key_id, bytes(destination.config_sealed), aad)
    return msgspec.json.decode(opened, type=dict[str, str])


def _aad(org_id: UUID, destination_id: UUID) -> bytes:
    return f"log-destination|{org_id}|{destination_id}".encode()


CONFIGS = SealedRows(
    what="log shipping configurations",
    rows=LogDestination.objects.all,
    key_field="config_key_id",
    sealed_field="config_sealed",
    aad=lambda destination: _aad(destination.org_id, destination.pk),
)
