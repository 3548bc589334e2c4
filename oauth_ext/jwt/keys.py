"""The signing keys in use: those of TOKEN_SIGNING_KEYS, else those of the database, cached for seconds.

The cache is safe because a key is published long before and long after it signs: a process that is late signs with a
key that every other process still accepts.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

import structlog
from django.conf import settings
from django.db import transaction

from gateway.lib import clock
from gateway.lib.crypto import CryptoError
from oauth_ext.jwt import key_material, key_rows
from oauth_ext.jwt.key_material import KeySet, SigningPair
from oauth_ext.models import SigningKey

log = structlog.get_logger(__name__)

RELOAD_AFTER_S = 10.0  # far below the hour for which a new key waits
# An unknown kid may be a rotation a second ago, or an attacker who would cause a query for every token.
RELOAD_FOR_UNKNOWN_KEY_AFTER_S = 1.0


class SigningKeysUnavailable(Exception):
    """CREDENTIAL_KEYS opens none of the stored keys. A new key would hide that fault."""


@dataclass(frozen=True, slots=True)
class _Loaded:
    key_set: KeySet
    at_s: float


_loaded: _Loaded | None = None
_loading = threading.Lock()  # threads that need the keys at the same time share one load


def load_key_set(*, max_age_s: float = RELOAD_AFTER_S) -> KeySet:
    """At most `max_age_s` seconds old. Raises: SigningKeysUnavailable. Spec: D121, D130"""
    if (kept := _kept(max_age_s)) is not None:
        return kept
    with _loading:
        if (kept := _kept(max_age_s)) is not None:
            return kept
        return _load()


def _kept(max_age_s: float) -> KeySet | None:
    kept = _loaded
    return kept.key_set if kept is not None and time.monotonic() - kept.at_s < max_age_s else None


def _load() -> KeySet:
    global _loaded
    started_s = time.monotonic()
    # The first call of a deployment stores a key, so it must not run inside a transaction.
    fresh = _configured(settings.TOKEN_SIGNING_KEYS) if settings.TOKEN_SIGNING_KEYS else _stored()
    _loaded = _Loaded(fresh, started_s)
    return fresh


def loaded_key_set() -> KeySet | None:
    """The keys in memory, without I/O; None once they are RELOAD_AFTER_S old."""
    return _kept(RELOAD_AFTER_S)


def forget() -> None:
    global _loaded
    _loaded = None


def _configured(text: str) -> KeySet:
    pairs = key_material.parse_setting(text)
    return key_material.key_set(pairs[0], pairs)


def _stored() -> KeySet:
    now = clock.now()
    rows = key_rows.live(now) or _create_first()
    # Public halves come from the sealed private ones, so write access to the table alone adds no usable key.
    opened = [(row, pair) for row in rows if (pair := _open_or_report(row)) is not None]
    if not opened:
        raise SigningKeysUnavailable("No stored signing key can be opened with CREDENTIAL_KEYS.")
    # Rows come latest first. Another host's clock may be ahead of ours: then the earliest key is the one in use.
    signer = next((pair for row, pair in opened if row.signs_from <= now), opened[-1][1])
    return key_material.key_set(signer, [pair for _, pair in opened])


def _open_or_report(row: SigningKey) -> SigningPair | None:
    try:
        return key_rows.unseal(row)
    except (CryptoError, ValueError) as fault:
        log.error("a signing key does not open", kid=row.kid, sealed_under=row.key_id, fault=str(fault))
        return None


def _create_first() -> list[SigningKey]:
    # Durable: no process can verify the tokens of a key that was rolled back.
    with transaction.atomic(durable=True):
        key_rows.lock_table()
        now = clock.now()
        if rows := key_rows.live(now):  # another process was first
            return rows
        row = key_rows.insert(key_material.generate(now), created_at=now, signs_from=now)
    log.info("created the first signing key", kid=row.kid)
    return [row]
