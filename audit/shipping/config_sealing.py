"""The `config` of a destination, sealed for its row; a key change seals it again. Spec: D96"""

from __future__ import annotations

from uuid import UUID

import msgspec
from django.db import transaction
from django.db.models import Count

from audit.shipping_models import LogDestination
from gateway.lib.crypto import CryptoError
from gateway.lib.keyring import keyring


def seal_config(config: dict[str, str], *, org_id: UUID, destination_id: UUID) -> tuple[str, bytes]:
    """Returns the key id and the sealed configuration."""
    keys = keyring()
    return keys.current_id, keys.wrap(msgspec.json.encode(config), _aad(org_id, destination_id))


def config_of(destination: LogDestination) -> dict[str, str]:
    """Raises: CryptoError."""
    aad = _aad(destination.org_id, destination.pk)
    opened = keyring().unwrap(destination.config_key_id, bytes(destination.config_sealed), aad)
    return msgspec.json.decode(opened, type=dict[str, str])


def reseal_configs() -> int:
    """Seals all configurations under the current key; those that do not open stay. Returns their number. Spec: D68"""
    old = LogDestination.objects.exclude(config_key_id=keyring().current_id).order_by("pk")
    return sum(_reseal(pk) for pk in list(old.values_list("pk", flat=True)))


def configs_per_key_id() -> dict[str, int]:
    rows = LogDestination.objects.order_by("config_key_id").values_list("config_key_id")
    return dict(rows.annotate(Count("pk")))


@transaction.atomic
def _reseal(pk: UUID) -> bool:
    destination = LogDestination.objects.select_for_update().filter(pk=pk).first()
    if destination is None:
        return False
    try:
        config = config_of(destination)
    except CryptoError:
        return False
    destination.config_key_id, destination.config_sealed = seal_config(
        config, org_id=destination.org_id, destination_id=pk
    )
    destination.save(update_fields=["config_key_id", "config_sealed"])
    return True


def _aad(org_id: UUID, destination_id: UUID) -> bytes:
    return f"log-destination|{org_id}|{destination_id}".encode()
