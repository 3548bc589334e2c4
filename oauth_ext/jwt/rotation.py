"""Rotates the signing keys.

published --signs_from, 1 h--> signing --next key signs--> published --retires_at, 2 h--> deleted
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from django.conf import settings
from django.db import transaction

from gateway.coordination import epochs
from gateway.lib import clock
from gateway.lib.errors import Conflict
from oauth_ext.jwt import key_material, key_rows, keys
from oauth_ext.models import SigningKey

log = structlog.get_logger(__name__)

PUBLISHED_AHEAD = timedelta(hours=1)  # caches of our JWKS have the new key before it signs
PUBLISHED_AFTER = timedelta(hours=2)  # D130; twice the lifetime of the last token the old key signed


@dataclass(frozen=True, slots=True)
class Rotation:
    kid: str
    signs_from: datetime
    retiring: tuple[str, ...]  # kids that are deleted at `retires_at`
    retires_at: datetime


def rotate_signing_key(*, at_once: bool = False) -> Rotation:
    """Raises: Conflict while a published key waits (without `at_once`), or with TOKEN_SIGNING_KEYS set. Spec: D130"""
    if settings.TOKEN_SIGNING_KEYS:
        raise Conflict("TOKEN_SIGNING_KEYS brings the signing keys: rotate them there.")
    with transaction.atomic(durable=True):
        key_rows.lock_table()
        rotation = _rotate(clock.now(), at_once=at_once)
        epochs.bump_on_commit(epochs.SIGNING_KEYS)
    keys.forget()
    log.info("rotated the signing key", kid=rotation.kid, signs_from=rotation.signs_from.isoformat())
    return rotation


def remove_retired_signing_keys(now: datetime) -> int:
    """Returns the number of deleted keys."""
    deleted, _ = SigningKey.objects.filter(retires_at__lte=now).delete()
    return deleted


def _rotate(now: datetime, *, at_once: bool) -> Rotation:
    remove_retired_signing_keys(now)
    rows = key_rows.live(now)
    waiting = next((row for row in rows if row.signs_from > now), None)
    if waiting is not None and not at_once:
        raise Conflict(
            f"The key {waiting.kid} is already published and signs from {clock.rfc3339(waiting.signs_from)}."
        )
    signs_from = now if at_once else now + PUBLISHED_AHEAD
    if waiting is None:
        chosen = key_rows.insert(key_material.generate(now), created_at=now, signs_from=signs_from)
    else:
        # A key that waits for its hour is already published, so it signs first.
        chosen = waiting
        chosen.signs_from = signs_from
        chosen.save(update_fields=["signs_from"])
    retires_at = signs_from + PUBLISHED_AFTER
    retiring = [row for row in rows if row.pk != chosen.pk]
    for row in retiring:
        # A key that an earlier rotation already retires keeps its earlier hour, unless it is the one that signs now.
        if row.retires_at is None or row == _signing(retiring, now):
            row.retires_at = retires_at
            row.save(update_fields=["retires_at"])
    return Rotation(chosen.kid, signs_from, tuple(row.kid for row in retiring), retires_at)


def _signing(rows: list[SigningKey], now: datetime) -> SigningKey | None:
    return next((row for row in rows if row.signs_from <= now), None)
