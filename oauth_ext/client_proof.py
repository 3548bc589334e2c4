"""Whether a request comes from the client it names."""

from __future__ import annotations

from django.contrib.auth.hashers import check_password

from oauth_ext.models import Client


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
