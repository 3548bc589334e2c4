"""The authorization code grant. Spec: §4.2 · RFC 6749 4.1.3 · RFC 7636 · D120"""

from __future__ import annotations

from typing import Any

from oauthlib.oauth2.rfc6749 import errors

from audit.event_types import EventType
from gateway.lib import clock, secrets
from oauth_ext import lock_order, pkce, redirect_uris, requested_resources
from oauth_ext.grants.token_request import ConsumingGrant, asked_resources, is_entitled, required, targeted
from oauth_ext.models import Grant
from oauth_ext.services.token_families import begin_family, end_misused_family, locked_family


class AuthorizationCode(ConsumingGrant):
    """Redeems a code once for one token family; a second redemption ends that family."""

    def validate_token_request(self, request: Any) -> None:
        code, verifier = required(request, "code"), required(request, "code_verifier")
        redirect_uri = required(request, "redirect_uri")
        self.validate_client_authentication(request)
        self.validate_grant_type(request)
        grant = _locked_grant(request.client, code)
        if grant.redeemed_at is not None:
            _end_what_it_gave(grant)
            raise errors.InvalidGrantError(description="The code was already used.")
        if grant.is_expired():
            raise errors.InvalidGrantError(description="The code has expired.")
        if not redirect_uris.same(grant.redirect_uri, redirect_uri):
            raise errors.InvalidGrantError(description="redirect_uri is not the one the code was sent to.")
        if not pkce.proves(verifier, grant.code_challenge):
            raise errors.InvalidGrantError(description="code_verifier does not match the challenge.")
        resource = targeted(lambda: requested_resources.narrowed(grant.resource, asked_resources(request)))
        # Last, so that every refusal above leaves the code unused.
        _redeem(request, grant)
        request.resource = resource


def _locked_grant(client: Any, code: str) -> Grant:
    """Raises: InvalidGrantError for an unknown code, and for another client's, which stays unchanged."""
    found = Grant.objects.filter(code=secrets.sha256(code).hex(), application=client).first()
    if found is None:
        raise errors.InvalidGrantError(description="The code is unknown.")
    is_locked = lock_order.lock(org_id=found.organization_id, user_id=found.user_id, client_pk=client.pk)
    # Read again under the lock: another request may have redeemed it meanwhile.
    locked = Grant.objects.select_for_update(of=("self",)).select_related("user").filter(pk=found.pk).first()
    if not is_locked or locked is None:
        raise errors.InvalidGrantError(description="The code is unknown.")
    return locked


def _redeem(request: Any, grant: Grant) -> None:
    if not is_entitled(grant.user_id, grant.organization_id):
        raise errors.InvalidGrantError(description="The person is no longer a member of the organization.")
    scopes = grant.scope.split()
    family = begin_family(
        client=request.client,
        user=grant.user,
        org_id=grant.organization_id,
        approved_by_id=grant.user_id,
        scopes=scopes,
        resources=grant.resource,
        redirect_host=redirect_uris.shown_host(grant.redirect_uri),
    )
    grant.redeemed_at, grant.family_key = clock.now(), family.pk
    grant.save(update_fields=["redeemed_at", "family_key"])
    request.user, request.organization_id = grant.user, grant.organization_id
    request.scopes, request.family = scopes, family


def _end_what_it_gave(grant: Grant) -> None:
    family = None if grant.family_key is None else locked_family(grant.family_key)
    if family is not None:
        end_misused_family(family, EventType.OAUTH_CODE_REUSE_DETECTED)
