"""The key of CREDENTIAL_KEYS that seals: the first, once it is the first of every process.   docs/decisions/0087"""

from __future__ import annotations

from datetime import datetime

import structlog
from django.db import transaction

from gateway.keys.holders import led_by_another_key
from gateway.keys.models import KeyRecord
from gateway.keys.sealed_columns import rows_by_key_id
from gateway.lib import clock
from gateway.lib.crypto import Keyring
from gateway.lib.keyring import keyring

log = structlog.get_logger(__name__)


def sealing_keys() -> Keyring:
    """All keys of CREDENTIAL_KEYS; `current_id` is the one that every process can open with."""
    ring, name = keyring(), current_name(KeyRecord.Kind.MASTER)
    # A recorded key that this process lacks cannot seal: then its own first one does.
    return ring.sealing_with(name) if name in ring.keys else ring


def current_name(kind: KeyRecord.Kind) -> str:
    """Empty if none is recorded."""
    found = KeyRecord.objects.filter(kind=kind, is_current=True).values_list("name", flat=True).first()
    return found or ""


def settle_master_key() -> bool:
    """Record the keys of CREDENTIAL_KEYS; let the first one seal if it is the first of every running process.

    Returns whether it seals. Processes that disagree about the order leave sealing to the key that has it.
    """
    ring = keyring()
    known = dict(KeyRecord.objects.filter(kind=KeyRecord.Kind.MASTER).values_list("name", "is_current"))
    is_settled = known.get(ring.current_id, False) and ring.keys.keys() <= known.keys()
    return is_settled or not ring.keys or _settle(ring, clock.now())


@transaction.atomic
def _settle(ring: Keyring, now: datetime) -> bool:
    for name in ring.keys:
        note(KeyRecord.Kind.MASTER, name, now)
    # Processes that settle at the same time wait here for one another.
    records = {row.name: row for row in KeyRecord.objects.select_for_update().filter(kind=KeyRecord.Kind.MASTER)}
    current = next((row for row in records.values() if row.is_current), None)
    if current is None:
        current = make_current(records[_in_use(ring)], now)
    if current.name == ring.current_id:
        return True
    if led_by_another_key(ring.current_id, now):
        return False
    make_current(records[ring.current_id], now)
    log.info("master key changed", former=current.name, current=ring.current_id)
    return True


def note(kind: KeyRecord.Kind, name: str, now: datetime) -> KeyRecord:
    record, _ = KeyRecord.objects.get_or_create(kind=kind, name=name, defaults={"first_seen_at": now})
    return record


def make_current(record: KeyRecord, now: datetime) -> KeyRecord:
    """Needs a transaction."""
    KeyRecord.objects.filter(kind=record.kind, is_current=True).update(is_current=False)
    record.is_current, record.used_from = True, now
    record.save(update_fields=["is_current", "used_from"])
    return record


def _in_use(ring: Keyring) -> str:
    """The first key with rows: those of a release that recorded nothing. The first key of all if none has any."""
    used = rows_by_key_id()
    return next((name for name in ring.keys if name in used), ring.current_id)
