"""Token exchange: a service client presents a person's token and gets one with which it acts for the person.

Subject and actor stay apart: the token is the person's, its client and its `act` are the service client's. It reaches
what both may use, and ends with the token that it was given for. Spec: RFC 8693 · docs/decisions/0109
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from oauthlib.oauth2.rfc6749 import errors
from oauthlib.oauth2.rfc6749.errors import CustomOAuth2Error

from gateway.lib import clock
from oauth_ext import lock_order, requested_resources, resources
from oauth_ext.bearer import BearerIdentity, InvalidBearer, identity_of, read_bearer
from oauth_ext.grants.for_people import GrantForPeople, common_scopes, grant_assertion, proven_assertion
from oauth_ext.grants.token_request import asked_resources, is_entitled, required, targeted
from oauth_ext.models import AccessToken, Client
from oauth_ext.services.token_families import locked_family

ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105
IDENTITY_ASSERTION = "urn:ietf:params:oauth:token-type:id-jag"
_JWT = "urn:ietf:params:oauth:token-type:jwt"


class TokenExchange(GrantForPeople):
    """The actor is the authenticated client: a token of another actor is not accepted."""

    def prepare(self, request: Any) -> None:
        kind, token = required(request, "subject_token_type"), required(request, "subject_token")
        _check_wishes(request)
        request.proven, request.subject = None, None
        if kind == IDENTITY_ASSERTION:
            try:
                request.proven = proven_assertion(request.client, token)
            except errors.InvalidGrantError as fault:
                raise errors.InvalidRequestError(description=fault.description) from None
        elif kind in {ACCESS_TOKEN, _JWT}:
            request.subject = _person_of(token, request.client)
        else:
            raise errors.InvalidRequestError(description="subject_token_type is not supported.")

    def validate_token_request(self, request: Any) -> None:
        if request.subject is not None:
            _grant_for_token(request, request.subject)
            return
        try:
            grant_assertion(request, *request.proven)
        except errors.InvalidGrantError as fault:
            # RFC 8693 2.2.2
            raise errors.InvalidRequestError(description=fault.description) from None

    def more_members(self) -> dict[str, str]:
        return {"issued_token_type": ACCESS_TOKEN}


def _check_wishes(request: Any) -> None:
    """Raises: InvalidRequestError; CustomOAuth2Error `invalid_target`."""
    if getattr(request, "actor_token", None) or getattr(request, "actor_token_type", None):
        raise errors.InvalidRequestError(description="The actor is the client itself. Send no actor_token.")
    if (getattr(request, "requested_token_type", None) or ACCESS_TOKEN) not in {ACCESS_TOKEN, _JWT}:
        raise errors.InvalidRequestError(description="requested_token_type is not supported.")
    audience = getattr(request, "audience", None) or settings.BASE_URL
    if audience != settings.BASE_URL and not resources.is_ours(settings.BASE_URL, audience):
        raise CustomOAuth2Error("invalid_target", description="The audience is not this service.")


def _person_of(token: str, client: Client) -> tuple[str, BearerIdentity]:
    """The checksum of an access token of a person in the client's organization, and who it identifies.

    Raises: InvalidRequestError.
    """
    try:
        presented = read_bearer(token)
        if presented.claims is None:
            raise InvalidBearer("An agent key does not represent a person.")
        found = identity_of(presented, presented.statement.ask(presented.key))
    except InvalidBearer as fault:
        raise errors.InvalidRequestError(description=f"The subject token is not accepted. {fault.reason}") from None
    if found.user_id is None or found.org_id != client.organization_id:
        raise errors.InvalidRequestError(
            description="The subject token does not belong to a person in the client's organization."
        )
    if found.client is None or found.client.organization_id is not None:
        raise errors.InvalidRequestError(description="The subject token was already exchanged for a service client.")
    return presented.key, found


def _grant_for_token(request: Any, subject: tuple[str, BearerIdentity]) -> None:
    checksum, found = subject
    request.resource = targeted(lambda: requested_resources.narrowed(found.audiences, asked_resources(request)))
    request.scopes = common_scopes(sorted(found.scopes), request.scope or "")
    is_locked = lock_order.lock(org_id=found.org_id, user_id=found.user_id, client_pk=request.client.pk)
    # Read again under the locks: the person may have ended the app, and an owner the permission, meanwhile.
    row = AccessToken.objects.filter(token_checksum=checksum).first() if is_locked else None
    family = None if row is None or row.token_family_id is None else locked_family(row.token_family_id)
    if row is None or family is None or family.user is None or not family.user.is_active:
        raise errors.InvalidRequestError(description="The subject token was revoked.")
    if not is_entitled(found.user_id, found.org_id):
        raise errors.InvalidRequestError(description="The person is no longer a member of the organization.")
    if not Client.objects.filter(pk=request.client.pk, acts_for_people=True).exists():
        raise errors.UnauthorizedClientError
    left_s = int((found.expires_at - clock.now()).total_seconds())
    if left_s < 1:
        raise errors.InvalidRequestError(description="The subject token has expired.")
    request.lifetime_s = min(left_s, settings.ACCESS_TOKEN_LIFETIME_S)
    request.user, request.organization_id, request.family = family.user, found.org_id, family
