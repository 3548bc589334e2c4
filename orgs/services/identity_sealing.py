"""The identity provider's refresh tokens, sealed for one identity and sealed again when the key changes."""

from __future__ import annotations

from gateway.keys.current import sealing_keys
from gateway.keys.resealing import SealedRows
from gateway.lib.crypto import CryptoError
from gateway.lib.keyring import keyring
from orgs.models import Identity


def seal_refresh_token(token: str, identity_pk: int) -> tuple[str, bytes]:
    """Return the key id and the sealed token."""
    keys = sealing_keys()
    return keys.current_id, keys.wrap(token.encode(), _aad(identity_pk))


def refresh_token_of(identity: Identity) -> str | None:
    """None if there is no token or it does not open."""
    if not identity.refresh_sealed:
        return None
    sealed = bytes(identity.refresh_sealed)
    try:
        return keyring().unwrap(identity.refresh_key_id, sealed, _aad(identity.pk)).decode()
    except CryptoError:
        return None


def _aad(identity_pk: int) -> bytes:
    # Bound to the row: a token that is moved to another identity does not open.
    return f"identity|{identity_pk}".encode()


REFRESH_TOKENS = SealedRows(
    what="refresh tokens of the identity provider",
    rows=Identity.objects.all,
    key_field="refresh_key_id",
    sealed_field="refresh_sealed",
    aad=lambda identity: _aad(identity.pk),
)
