"""What the grants share: reading a token request, and answering it inside one transaction."""

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
from oauth_ext.audiences import ForeignResource
from oauth_ext.jwt import keys
from oauth_ext.scopes_backend import all_exist
from orgs.selectors import membership_row


class ConsumingGrant(GrantTypeBase):
    """A grant that uses something up. What it used up, the tokens it gives, and what it ends because of misuse are
    committed together; its locks last until then.

    A subclass checks everything in `validate_token_request` and says on the request whose the tokens are (user,
    organization_id), what they are for (scopes, resource) and where they belong (family).
    """

    def create_token_response(self, request: Any, token_handler: Any) -> tuple[dict[str, str], str, int]:
        """See the library."""
        keys.load_key_set()  # the first of all makes a key, in a transaction of its own
        headers: dict[str, str] = self._get_default_headers()
        with transaction.atomic():
            try:
                self.validate_token_request(request)
            except OAuth2Error as fault:
                return headers, fault.json, fault.status_code
            token = token_handler.create_token(request, refresh_token=True)
            self.request_validator.save_token(token, request)
        return headers, json.dumps(token), 200

    def validate_token_request(self, request: Any) -> None:
        """Raise OAuth2Error, or leave on the request what the class text lists."""
        raise NotImplementedError


def required(request: Any, name: str) -> str:
    """A parameter that must be there.

    Raises: InvalidRequestError.
    """
    value = getattr(request, name, None)
    if not isinstance(value, str) or not value:
        raise errors.InvalidRequestError(description=f"{name} is missing.")
    return value


def asked_resources(request: Any) -> list[str]:
    """Every `resource` of the request: the library keeps only the last."""
    return [value for name, value in request.decoded_body or [] if name == "resource"]


def targeted(choose: Callable[[], list[str]]) -> list[str]:
    """The addresses that `choose` chooses, with its refusal in the library's terms.

    Raises: CustomOAuth2Error `invalid_target`.
    """
    try:
        return choose()
    except ForeignResource as fault:
        raise CustomOAuth2Error("invalid_target", description=fault.reason) from None


def narrowed_scopes(granted: Sequence[str], asked: str) -> list[str]:
    """The scopes a token gets that asks for fewer than were granted; all of them when it asks for none.

    Raises: InvalidScopeError when it asks for more.   Spec: D123, D136
    """
    if not asked:
        return list(granted)
    try:
        wanted = list(scopes.parse(asked))
    except ValueError:
        raise errors.InvalidScopeError from None
    everything = not scopes.EVERYTHING.isdisjoint(granted)
    if not wanted or not (everything or set(wanted) <= set(granted)) or not all_exist(wanted):
        raise errors.InvalidScopeError
    return wanted


def is_entitled(user_id: uuid.UUID | None, org_id: uuid.UUID) -> bool:
    """Whether the person is an active member of the organization; a service account (None) is as long as it exists."""
    return user_id is None or membership_row(user_id, org_id) is not None
