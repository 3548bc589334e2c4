"""Whether a request comes from the client it names."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.hashers import check_password
from django.db.models import Model

from gateway.lib import secrets
from oauth_ext import features, token_form
from oauth_ext.client_authentication import Presented
from oauth_ext.models import Client, Grant, RefreshToken
from oauth_ext.token_form import Fields

# What a client is given for a grant, and the column that holds the digest of it.
_GIVEN: dict[str, tuple[str, type[Model], str]] = {
    features.AUTHORIZATION_CODE: ("code", Grant, "code"),
    features.REFRESH_TOKEN: ("refresh_token", RefreshToken, "token_checksum"),
}


def usable_client(client_id: str) -> Client | None:
    """The client of this id, unless it is unknown or its time is over: the two look the same. Spec: D73"""
    found = Client.objects.filter(client_id=client_id).first() if client_id else None
    return None if found is None or found.is_expired() else found


def is_proven(client: Client, client_secret: str) -> bool:
    """Whether a client that sent `client_secret` is `client`: a confidential one by its secret, a public one by having
    sent none.
    """
    if client.client_type == Client.CLIENT_PUBLIC:
        return not client_secret
    # An empty secret is no secret, whatever the row holds.
    return bool(client_secret) and check_password(client_secret, client.client_secret)


def own_credential(sent: Presented, fields: Fields) -> str:
    """The digest of the secret, code or refresh token that the grant asks for, if it is the client's; else empty.

    One indexed read, which uses nothing up. Each of them carries 256 random bits: trying finds none.
    """
    given = _GIVEN.get(token_form.first(fields, "grant_type"))
    if given is None:
        return _own_secret(sent)
    name, model, column = given
    digest = secrets.sha256(token_form.first(fields, name)).hex()
    asked: dict[str, Any] = {column: digest, "application__client_id": sent.client_id}
    return digest if model._default_manager.filter(**asked).exists() else ""


def _own_secret(sent: Presented) -> str:
    client = usable_client(sent.client_id) if sent.client_secret else None
    is_own = client is not None and is_proven(client, sent.client_secret)
    return secrets.sha256(sent.client_secret).hex() if is_own else ""
