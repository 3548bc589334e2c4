"""The identity provider's refresh tokens, sealed for one identity and sealed again when the key changes."""

from __future__ import annotations

from django.db import transaction
from django.db.models import Count

from gateway.lib.crypto import CryptoError
from gateway.lib.keyring import keyring
from orgs.models import Identity


def seal_refresh_token(token: str, identity_pk: int) -> tuple[str, bytes]:
    """Return the key id and the sealed token."""
    keys = keyring()
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


@transaction.atomic
def reseal_refresh_tokens() -> int:
    """Seal every token that opens under the current key; return their number. Spec: D68"""
    held = Identity.objects.exclude(refresh_key_id__in=["", keyring().current_id]).order_by("pk").select_for_update()
    changed = []
    for identity in held:
        token = refresh_token_of(identity)
        if token is not None:
            identity.refresh_key_id, identity.refresh_sealed = seal_refresh_token(token, identity.pk)
            changed.append(identity)
    Identity.objects.bulk_update(changed, ["refresh_key_id", "refresh_sealed"])
    return len(changed)


def refresh_tokens_per_key_id() -> dict[str, int]:
    rows = Identity.objects.exclude(refresh_key_id="").order_by("refresh_key_id").values_list("refresh_key_id")
    return dict(rows.annotate(Count("pk")))


def _aad(identity_pk: int) -> bytes:
    # Bound to the row: a token that is moved to another identity does not open.
    return f"identity|{identity_pk}".encode()
