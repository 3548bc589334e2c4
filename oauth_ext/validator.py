"""oauthlib's hooks: client authentication, scopes, and the storage of tokens."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.db import IntegrityError
from oauth2_provider.models import set_token_value
from oauth2_provider.oauth2_validators import OAuth2Validator
from oauthlib.oauth2.rfc6749 import errors

from gateway.lib import clock
from oauth_ext import client_authentication, features, lock_order
from oauth_ext.bearer import record_use
from oauth_ext.client_proof import is_proven
from oauth_ext.models import AccessToken, Client, RefreshToken
from oauth_ext.models.client import GRANTS_FOR_PEOPLE
from oauth_ext.scopes import parse as parse_scopes
from oauth_ext.scopes_backend import all_exist

# A public client passes authentication for these grants only to be refused with `unauthorized_client`: `invalid_client`
# would mean that the client is unknown. protocol.md B.6
CONFIDENTIAL_GRANTS = frozenset({features.CLIENT_CREDENTIALS, features.DEVICE_CODE, *GRANTS_FOR_PEOPLE})


class Validator(OAuth2Validator):
    """Accepts HTTP Basic or the form, never both; tokens belong to an organization. Spec: D70-D73, D125"""

    def client_authentication_required(self, request: Any, *args: Any, **kwargs: Any) -> bool:
        """Returns False only for a public client that sends no secret."""
        sent = self._presented(request)
        client = self._usable_client(sent.client_id, request)
        if client is None or client.client_type != Client.CLIENT_PUBLIC or sent.client_secret:
            return True
        request.client_id = sent.client_id  # HTTP Basic with an empty secret names a public client too
        return False

    def authenticate_client(self, request: Any, *args: Any, **kwargs: Any) -> bool:
        """Returns whether the request proves its client, and sets `request.client`."""
        sent = self._presented(request)
        client = self._usable_client(sent.client_id, request)
        if client is None:
            return False
        if client.client_type == Client.CLIENT_PUBLIC:
            return request.grant_type in CONFIDENTIAL_GRANTS
        return is_proven(client, sent.client_secret)

    def validate_grant_type(
        self, client_id: str, grant_type: str, client: Client, request: Any, *args: Any, **kwargs: Any
    ) -> bool:
        """The library knows no grant by which a client gets a token of a person."""
        if grant_type in GRANTS_FOR_PEOPLE:
            return client.allows_grant_type(grant_type)
        return bool(super().validate_grant_type(client_id, grant_type, client, request, *args, **kwargs))  # type: ignore[no-untyped-call]

    def validate_scopes(
        self, client_id: str, scopes: Iterable[str], client: Client, request: Any, *args: Any, **kwargs: Any
    ) -> bool:
        """Accepts every scope that exists: a scope only narrows. Spec: D136"""
        try:
            request.scopes = list(parse_scopes(" ".join(scopes)))
        except ValueError:
            return False
        return bool(request.scopes) and all_exist(request.scopes)

    def save_bearer_token(self, token: Any, request: Any, *args: Any, **kwargs: Any) -> None:
        """Raises: InvalidClientError when the client was deleted since it authenticated."""
        try:
            super().save_bearer_token(token, request, *args, **kwargs)  # type: ignore[no-untyped-call]
        except IntegrityError:
            if Client.objects.filter(pk=request.client.pk).exists():
                raise
            # A race with a deletion, not a server error.
            raise errors.InvalidClientError from None
        record_use(request.client.pk, now=clock.now())

    def _save_bearer_token(self, token: Any, request: Any, *args: Any, **kwargs: Any) -> None:
        """Raises: InvalidClientError when the client was deleted, or has another secret, since it authenticated."""
        if not _is_as_authenticated(request, self._presented(request).client_secret):
            raise errors.InvalidClientError
        family = getattr(request, "family", None)
        owned = {
            "user": request.user,
            "organization_id": request.organization_id,
            "application": request.client,
            "token_family": family,
        }
        expires = clock.now() + timedelta(seconds=token["expires_in"])
        access = AccessToken(scope=token["scope"], resource=request.resource, expires=expires, **owned)
        set_token_value(access, token["access_token"])
        access.save()
        if "refresh_token" in token:
            parent: RefreshToken | None = getattr(request, "refresh_parent", None)
            refresh = RefreshToken(
                parent=parent,
                generation=0 if parent is None else parent.generation + 1,
                in_grace=getattr(request, "refresh_in_grace", False),
                **owned,
            )
            set_token_value(refresh, token["refresh_token"])
            refresh.save()

    def _presented(self, request: Any) -> client_authentication.Presented:
        authorization = request.headers.get("Authorization")
        try:
            return client_authentication.presented(authorization, request.client_id or "", request.client_secret or "")
        except client_authentication.BadClientAuthentication as fault:
            raise errors.InvalidRequestError(description=fault.reason) from None

    def _usable_client(self, client_id: str, request: Any) -> Client | None:
        found: Client | None = self._load_application(client_id, request) if client_id else None  # type: ignore[no-untyped-call]
        return found


def _is_as_authenticated(request: Any, client_secret: str) -> bool:
    client: Client = request.client
    user_id = None if request.user is None else request.user.pk
    # The lock keeps the secret until this transaction ends: a rotation is seen here, or ends this request's tokens too.
    is_locked = lock_order.lock(org_id=request.organization_id, user_id=user_id, client_pk=client.pk)
    current = Client.objects.filter(pk=client.pk).first() if is_locked else None
    return current is not None and is_proven(current, client_secret)
