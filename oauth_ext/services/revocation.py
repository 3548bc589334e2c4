"""Token revocation: possession of the token suffices. Spec: RFC 7009 · D124 · protocol.md B.9"""

from __future__ import annotations

import uuid

from django.db import transaction

from gateway.lib import secrets
from oauth_ext.models import AccessToken, Client, RefreshToken
from oauth_ext.services.token_families import end_family, end_token_alone, locked_family


@transaction.atomic
def revoke_token(*, token: str, client: Client | None) -> None:
    """Ends the token's family. Unknown tokens, and those of another client than `client`, change nothing."""
    checksum = secrets.sha256(token).hex()
    mine = {} if client is None else {"application": client}
    refresh = RefreshToken.objects.filter(token_checksum=checksum, **mine).first()
    if refresh is not None:
        _end(refresh.token_family_id)
        return
    access = (
        AccessToken.objects.select_related("application", "token_family")
        .filter(token_checksum=checksum, **mine)
        .first()
    )
    if access is None:
        return
    if access.token_family_id is not None and not _is_of_an_agent(access):
        _end(access.token_family_id)
        return
    # A token of the client credentials grant has no family. An agent ends its own token about a person, and not the
    # person's app from which it got the token.
    end_token_alone(access)


def _is_of_an_agent(access: AccessToken) -> bool:
    """Whether it was given in exchange for a token of another client."""
    family = access.token_family
    return family is not None and family.client_id != access.application_id


def _end(family_id: uuid.UUID) -> None:
    family = locked_family(family_id)
    if family is not None:
        end_family(family)
