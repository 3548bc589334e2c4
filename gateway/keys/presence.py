"""Each process of the service says every half minute which keys it has, and settles which one seals."""

from __future__ import annotations

import hashlib
import hmac

import structlog
from django.conf import settings
from django.db import transaction

from gateway.keys.current import current_name, make_current, note, settle_master_key
from gateway.keys.holders import Holder
from gateway.keys.models import KeyRecord
from gateway.lib import clock
from gateway.lib.keyring import keyring

log = structlog.get_logger(__name__)


class Presence:
    def __init__(self, role: str) -> None:
        self._holder = Holder(role, key_names=lambda: keyring().keys)
        self._has_noted = False

    def is_due(self) -> bool:
        return self._holder.is_due()

    def note(self) -> None:
        self._holder.note()
        settle_master_key()
        if not self._has_noted:
            note_other_keys()
            _report_missing_key()
            self._has_noted = True

    def leave(self) -> None:
        self._holder.leave()


def note_other_keys() -> None:
    """The keys of the process that started last count as current: they sign from its start on."""
    _note(KeyRecord.Kind.SECRET, fingerprint(settings.SECRET_KEY))
    if settings.TOKEN_SIGNING_KEYS:
        _note(KeyRecord.Kind.SIGNING, settings.TOKEN_SIGNING_KEYS.partition(":")[0].strip())


def _report_missing_key() -> None:
    """A process that was started with a former setting opens little of what is sealed now."""
    name, known = current_name(KeyRecord.Kind.MASTER), keyring().keys
    if known and name not in known:
        log.error("current_master_key_missing", key_id=name)


def fingerprint(secret_key: str) -> str:
    """Tells two values apart, and is no help in finding one: the digest is keyed with the value itself."""
    return hmac.digest(secret_key.encode(), b"fingerprint of SECRET_KEY", hashlib.sha256).hex()[:12]


@transaction.atomic
def _note(kind: KeyRecord.Kind, name: str) -> None:
    now = clock.now()
    record = note(kind, name, now)
    if not record.is_current:
        make_current(record, now)
