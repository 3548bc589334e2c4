"""Checks that a request comes from the client it names."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.hashers import check_password
from django.db.models import Model

from gateway.lib import clock, secrets
from oauth_ext import features, token_form
from oauth_ext.client_authentication import Presented
from oauth_ext.models import Client, Grant, RefreshToken
from oauth_ext.token_form import Fields

# The form field with a client's own credential, and the column that holds its digest, by grant type.
_GIVEN: dict[str, tuple[str, type[Model], str]] = {
    features.AUTHORIZATION_CODE: ("code", Grant, "code"),
    features.REFRESH_TOKEN: ("refresh_token", RefreshToken, "token_checksum"),
}


def usable_client(client_id: str) -> Client | None:
    """Returns None for an unknown client and for an expired one alike. Spec: D73"""
    found = Client.objects.filter(client_id=client_id).first() if client_id else None
    return None if found is None or found.is_expired() else found


def is_proven(client: Client, client_secret: str) -> bool:
    """A confidential client must send its secret, or during an overlap the one before; a public one none. Spec: D171"""
    if client.client_type == Client.CLIENT_PUBLIC:
        return not client_secret
    # Both are compared in any case: the time of an answer does not tell which of them was sent.
    is_current = check_password(client_secret, client.client_secret)
    is_previous = check_password(client_secret, client.previous_secret or client.client_secret)
    # An empty secret proves nothing, even if the row holds the hash of one.
    return bool(client_secret) and (is_current or (is_previous and client.has_previous_secret(clock.now())))


def own_credential(sent: Presented, fields: Fields) -> str:
    """Returns the digest of the secret, code or refresh token if it belongs to the client, else an empty text."""
    given = _GIVEN.get(token_form.first(fields, "grant_type"))
    if given is None:
        return _own_secret(sent)
    name, model, column = given
    digest = secrets.sha256(token_form.first(fields, name)).hex()
    asked: dict[str, Any] = {column: digest, "application__client_id": sent.client_id}
    # One indexed read that consumes nothing. Each credential carries 256 random bits, so guessing finds none.
    return digest if model._default_manager.filter(**asked).exists() else ""


def _own_secret(sent: Presented) -> str:
    client = usable_client(sent.client_id) if sent.client_secret else None
    is_own = client is not None and is_proven(client, sent.client_secret)
    return secrets.sha256(sent.client_secret).hex() if is_own else ""
