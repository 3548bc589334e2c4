"""The common parts of the two grants by which a service client gets a token of a person. docs/decisions/0109"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.db import transaction
from oauthlib.oauth2 import OAuth2Error
from oauthlib.oauth2.rfc6749 import errors

from gateway.lib import clock
from oauth_ext import issuer_keys, requested_resources, scopes
from oauth_ext.grants.token_request import ConsumingGrant, asked_resources, targeted
from oauth_ext.issuer_keys import KeysRefused, KeysUnavailable, UnknownKey
from oauth_ext.jwt import keys
from oauth_ext.jwt.assertion import Assertion, InvalidAssertion, peek, verify
from oauth_ext.models import Client, TrustedIssuer
from oauth_ext.requested_resources import ForeignResource
from oauth_ext.scopes_backend import all_exist
from oauth_ext.services import assertions
from oauth_ext.services.assertions import UnknownPerson, UsedBefore


class IssuerAwayError(errors.OAuth2Error):
    """The issuer's keys cannot be read now. The assertion stays unused; the client may retry."""

    error = "temporarily_unavailable"
    status_code = 503


class GrantForPeople(ConsumingGrant):
    """Gives an access token without a refresh token.

    `prepare` runs before the transaction, because an issuer may take seconds to answer.
    """

    def create_token_response(self, request: Any, token_handler: Any) -> tuple[dict[str, str], str, int]:
        keys.load_key_set()
        headers: dict[str, str] = self._get_default_headers()
        try:
            self.validate_client_authentication(request)
            self.validate_grant_type(request)
            if not request.client.acts_for_people:
                raise errors.UnauthorizedClientError
            self.prepare(request)
        except OAuth2Error as fault:
            return headers, fault.json, fault.status_code
        try:
            # A refusal leaves no trace: nothing is used up, nobody is bound.
            with transaction.atomic():
                self.validate_token_request(request)
                token = token_handler.create_token(request)
                self.request_validator.save_token(token, request)
        except OAuth2Error as fault:
            return headers, fault.json, fault.status_code
        return headers, json.dumps({**token, **self.more_members()}), 200

    def prepare(self, request: Any) -> None:
        """Raises: OAuth2Error."""
        raise NotImplementedError

    def more_members(self) -> dict[str, str]:
        """Of the answer, beside those of every grant."""
        return {}


def proven_assertion(client: Client, text: str) -> tuple[TrustedIssuer, Assertion]:
    """An assertion about a person, by an issuer that the client's own organization trusts.

    Raises: InvalidGrantError; IssuerAwayError.
    """
    try:
        said = peek(text)
        trust = assertions.trust_for(client, said.issuer)
        if trust is None or said.algorithm not in trust.algorithms:
            raise InvalidAssertion("The organization does not trust the issuer, or not with this algorithm or client.")
        keys_known = issuer_keys.keys_of(trust.pk, trust.organization_id, trust.issuer, trust.jwks_url)
        key = keys_known.find(said.key_id, said.algorithm)
        bound = {"issuer": trust.issuer, "audience": settings.BASE_URL, "client_id": client.client_id}
        found = verify(text, key, **bound, now=clock.now())
        if found.tenant != trust.tenant:
            raise InvalidAssertion("The assertion comes from another tenant of the issuer.")
    except (InvalidAssertion, KeysRefused) as fault:
        raise errors.InvalidGrantError(description=fault.reason) from None
    except UnknownKey:
        raise errors.InvalidGrantError(description="The assertion is signed with an unknown key.") from None
    except KeysUnavailable as fault:
        raise IssuerAwayError(description=f"{fault.reason} Try again in a moment.") from None
    return trust, found


def grant_assertion(request: Any, trust: TrustedIssuer, found: Assertion) -> None:
    """Use the assertion up and set what `GrantForPeople` needs on the request. Raises: OAuth2Error."""
    try:
        known = assertions.locked_person(trust, found, request.client)
        user = known.user
        resources = targeted(
            lambda: requested_resources.narrowed(_own_resources(found.resources), asked_resources(request))
        )
        granted = common_scopes(_own_scopes(found.scope), request.scope or "")
        assertions.use_up(trust, found)
        assertions.link(trust, found, known)
        family = assertions.family_of(trust, request.client, user, scopes=granted, resources=resources)
    except UnknownPerson:
        raise errors.InvalidGrantError(
            description="The assertion names no member of the organization that can be recognized."
        ) from None
    except UsedBefore:
        raise errors.InvalidGrantError(description="The assertion was already used.") from None
    request.user, request.organization_id = user, trust.organization_id
    request.scopes, request.resource, request.family = granted, resources, family


def common_scopes(granted: Sequence[str], asked: str) -> list[str]:
    """The scopes that are granted and asked for; all `granted` ones when none is asked for. Raises: InvalidScopeError.

    MCP enterprise-managed authorization 7.2.1
    """
    try:
        wanted = scopes.parse(asked) if asked else ()
    except ValueError:
        raise errors.InvalidScopeError from None
    found = scopes.common(granted, wanted) if wanted else list(granted)
    if not found or not all_exist([*found, *wanted]):
        raise errors.InvalidScopeError
    return found


def _own_resources(named: Sequence[str]) -> list[str]:
    """Raises: InvalidGrantError. MCP enterprise-managed authorization 7.6.2"""
    try:
        return requested_resources.requested(named)
    except ForeignResource:
        raise errors.InvalidGrantError(description="The assertion is for another resource.") from None


def _own_scopes(scope: str) -> list[str]:
    """Raises: InvalidGrantError. MCP enterprise-managed authorization 7.6.2"""
    try:
        found = list(scopes.parse(scope)) if scope else [scopes.ALL]
    except ValueError:
        found = []
    if not found or not all_exist(found):
        raise errors.InvalidGrantError(description="The assertion names a scope that is unknown here.")
    return found
