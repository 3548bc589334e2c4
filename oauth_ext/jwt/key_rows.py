"""Signing keys as rows: sealed with CREDENTIAL_KEYS under their own kid, written under one lock."""

from __future__ import annotations

from datetime import datetime

from django.db import connection
from django.db.models import Q

from gateway.keys.current import sealing_keys
from gateway.keys.resealing import SealedRows
from gateway.lib.keyring import keyring
from oauth_ext.jwt import key_material
from oauth_ext.jwt.key_material import SigningPair
from oauth_ext.models import SigningKey


def live(now: datetime) -> list[SigningKey]:
    """Returns the published keys (next, current, previous), latest `signs_from` first. Spec: D130"""
    unretired = Q(retires_at=None) | Q(retires_at__gt=now)
    return list(SigningKey.objects.filter(unretired).order_by("-signs_from", "-created_at"))


def lock_table() -> None:
    """Lets one process at a time change keys; needs a transaction."""
    # A row lock is not enough: the first key has no row. A SQLite transaction already has the only write lock.
    if connection.vendor == "postgresql":
        table = connection.ops.quote_name(SigningKey._meta.db_table)
        with connection.cursor() as cursor:
            cursor.execute(f"LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE")


def insert(pair: SigningPair, *, created_at: datetime, signs_from: datetime) -> SigningKey:
    """The caller holds the table's lock."""
    key_id, sealed = seal(pair)
    return SigningKey.objects.create(
        kid=pair.kid,
        key_id=key_id,
        sealed_private_key=sealed,
        public_jwk=pair.public_jwk(),
        created_at=created_at,
        signs_from=signs_from,
    )


def seal(pair: SigningPair) -> tuple[str, bytes]:
    """Returns the id of the sealing key and the private key, sealed for this kid alone."""
    keys = sealing_keys()
    return keys.current_id, keys.wrap(pair.to_der(), _row_identity(pair.kid))


def unseal(row: SigningKey) -> SigningPair:
    """Raises: CryptoError when CREDENTIAL_KEYS does not open the row; ValueError when it holds no P-256 key."""
    der = keyring().unwrap(row.key_id, bytes(row.sealed_private_key), _row_identity(row.kid))
    return key_material.from_der(row.kid, der)


def _row_identity(kid: str) -> bytes:
    return b"signing-key|" + kid.encode()


SIGNING_KEYS = SealedRows(
    what="signing keys",
    rows=SigningKey.objects.all,
    key_field="key_id",
    sealed_field="sealed_private_key",
    aad=lambda row: _row_identity(row.kid),
)
