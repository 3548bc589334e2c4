"""The tokens of invitations at rest: sealed for one row, opened for admins who copy a link again, sealed anew when the
key changes."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction
from django.db.models import Count

from gateway.lib import clock
from gateway.lib.crypto import CryptoError
from gateway.lib.keyring import keyring
from orgs.models import Invitation


def seal_token(token: str, *, org_id: UUID, invitation_id: UUID) -> tuple[str, bytes]:
    """The id of the key of CREDENTIAL_KEYS and the sealed token, for this row only."""
    keys = keyring()
    return keys.current_id, keys.wrap(token.encode(), _aad(org_id, invitation_id))


def token_of(invitation: Invitation) -> str | None:
    """The token to copy again, or None when the key that sealed it is not configured any more."""
    aad = _aad(invitation.organization_id, invitation.pk)
    try:
        return keyring().unwrap(invitation.token_key_id, bytes(invitation.token_sealed), aad).decode()
    except CryptoError:
        return None


@transaction.atomic
def reseal_tokens() -> int:
    """Tokens of links that still work are sealed under the current key; how many were. Others are worth nothing.

    One that does not open stays as it is: its link works, and only copying it again does not.   Spec: D51, D68
    """
    old = Invitation.objects.pending(clock.now()).exclude(token_key_id=keyring().current_id)
    changed = []
    for invitation in old.select_for_update():
        token = token_of(invitation)
        if token is not None:
            invitation.token_key_id, invitation.token_sealed = seal_token(
                token, org_id=invitation.organization_id, invitation_id=invitation.pk
            )
            changed.append(invitation)
    Invitation.objects.bulk_update(changed, ["token_key_id", "token_sealed"])
    return len(changed)


def tokens_per_key_id() -> dict[str, int]:
    """How many links that still work hang on each key id."""
    rows = Invitation.objects.pending(clock.now()).order_by("token_key_id").values_list("token_key_id")
    return dict(rows.annotate(Count("pk")))


def _aad(organization_id: UUID, invitation_id: UUID) -> bytes:
    return f"invitation|{organization_id}|{invitation_id}".encode()
