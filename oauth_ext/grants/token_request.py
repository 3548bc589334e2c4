"""The grants' common parts: parameters, narrowing, and one transaction for each token response."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from django.db import transaction
from oauthlib.oauth2 import OAuth2Error
from oauthlib.oauth2.rfc6749 import errors
from oauthlib.oauth2.rfc6749.errors import CustomOAuth2Error
from oauthlib.oauth2.rfc6749.grant_types.base import GrantTypeBase

from oauth_ext import scopes
from oauth_ext.jwt import keys
from oauth_ext.requested_resources import ForeignResource
from oauth_ext.scopes_backend import all_exist
from orgs.selectors import membership_row


class ConsumingGrant(GrantTypeBase):
    """A grant that consumes a code or token.

    A subclass checks everything in `validate_token_request` and sets on the request: user, organization_id, scopes,
    resource and family.
    """

    def create_token_response(self, request: Any, token_handler: Any) -> tuple[dict[str, str], str, int]:
        keys.load_key_set()  # the first call of a deployment stores a key in its own transaction
        headers: dict[str, str] = self._get_default_headers()
        # Consumption, new tokens and the end of a misused family commit together: a refusal returns, so it commits too.
        with transaction.atomic():
            try:
                self.validate_token_request(request)
            except OAuth2Error as fault:
                return headers, fault.json, fault.status_code
            token = token_handler.create_token(request, refresh_token=True)
            self.request_validator.save_token(token, request)
        return headers, json.dumps(token), 200

    def validate_token_request(self, request: Any) -> None:
        """Raises: OAuth2Error."""
        raise NotImplementedError


def required(request: Any, name: str) -> str:
    """Raises: InvalidRequestError."""
    value = getattr(request, name, None)
    if not isinstance(value, str) or not value:
        raise errors.InvalidRequestError(description=f"{name} is missing.")
    return value


def asked_resources(request: Any) -> list[str]:
    # oauthlib keeps only the last `resource`.
    return [value for name, value in request.decoded_body or [] if name == "resource"]


def targeted(choose: Callable[[], list[str]]) -> list[str]:
    """Raises: CustomOAuth2Error `invalid_target`."""
    try:
        return choose()
    except ForeignResource as fault:
        raise CustomOAuth2Error("invalid_target", description=fault.reason) from None


def narrowed_scopes(granted: Sequence[str], asked: str) -> list[str]:
    """Returns all `granted` ones when none is asked for. Raises: InvalidScopeError. Spec: D123, D136"""
    if not asked:
        return list(granted)
    try:
        wanted = list(scopes.parse(asked))
    except ValueError:
        raise errors.InvalidScopeError from None
    everything = not scopes.EVERYTHING.isdisjoint(granted)
    # A scope wider than the grant is refused, never cut down.
    if not wanted or not (everything or set(wanted) <= set(granted)) or not all_exist(wanted):
        raise errors.InvalidScopeError
    return wanted


def is_entitled(user_id: uuid.UUID | None, org_id: uuid.UUID) -> bool:
    # A service client (None) is entitled as long as it exists.
    return user_id is None or membership_row(user_id, org_id) is not None
