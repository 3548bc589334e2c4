"""Tokens of invitations, sealed for one row; admins copy the link again, and a key change seals them again."""

from __future__ import annotations

from uuid import UUID

from gateway.keys.current import sealing_keys
from gateway.keys.resealing import SealedRows
from gateway.lib.crypto import CryptoError
from gateway.lib.keyring import keyring
from orgs.models import Invitation


def seal_token(token: str, *, org_id: UUID, invitation_id: UUID) -> tuple[str, bytes]:
    """Return the key id and the sealed token."""
    keys = sealing_keys()
    return keys.current_id, keys.wrap(token.encode(), _aad(org_id, invitation_id))


def token_of(invitation: Invitation) -> str | None:
    """None if the sealed token does not open."""
    aad = _aad(invitation.organization_id, invitation.pk)
    try:
        return keyring().unwrap(invitation.token_key_id, bytes(invitation.token_sealed), aad).decode()
    except CryptoError:
        return None


def _aad(organization_id: UUID, invitation_id: UUID) -> bytes:
    return f"invitation|{organization_id}|{invitation_id}".encode()


# Ended invitations too: a key is done with when no row names it. A token that does not open stays as it is: its link
# works, but cannot be copied again.
TOKENS = SealedRows(
    what="invitation tokens",
    rows=Invitation.objects.all,
    key_field="token_key_id",
    sealed_field="token_sealed",
    aad=lambda invitation: _aad(invitation.organization_id, invitation.pk),
)
