"""Tokens of invitations, sealed for one row; admins copy the link again, and a key change seals them again."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction
from django.db.models import Count

from gateway.lib import clock
from gateway.lib.crypto import CryptoError
from gateway.lib.keyring import keyring
from orgs.models import Invitation


def seal_token(token: str, *, org_id: UUID, invitation_id: UUID) -> tuple[str, bytes]:
    """Return the key id and the sealed token."""
    keys = keyring()
    return keys.current_id, keys.wrap(token.encode(), _aad(org_id, invitation_id))


def token_of(invitation: Invitation) -> str | None:
    """None if the sealed token does not open."""
    aad = _aad(invitation.organization_id, invitation.pk)
    try:
        return keyring().unwrap(invitation.token_key_id, bytes(invitation.token_sealed), aad).decode()
    except CryptoError:
        return None


@transaction.atomic
def reseal_tokens() -> int:
    """Seal the tokens of pending invitations under the current key; return their number. Spec: D51, D68"""
    old = Invitation.objects.pending(clock.now()).exclude(token_key_id=keyring().current_id)
    changed = []
    for invitation in old.select_for_update():
        token = token_of(invitation)
        # A token that does not open stays as it is: its link works, but cannot be copied again.
        if token is not None:
            invitation.token_key_id, invitation.token_sealed = seal_token(
                token, org_id=invitation.organization_id, invitation_id=invitation.pk
            )
            changed.append(invitation)
    Invitation.objects.bulk_update(changed, ["token_key_id", "token_sealed"])
    return len(changed)


def tokens_per_key_id() -> dict[str, int]:
    """Pending invitations only."""
    rows = Invitation.objects.pending(clock.now()).order_by("token_key_id").values_list("token_key_id")
    return dict(rows.annotate(Count("pk")))


def _aad(organization_id: UUID, invitation_id: UUID) -> bytes:
    return f"invitation|{organization_id}|{invitation_id}".encode()
