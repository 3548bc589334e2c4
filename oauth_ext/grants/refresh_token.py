"""The refresh token grant, with rotation and a grace period.

   unused --use--> used --again in grace--> used, one more child
                    |
                    '--later, or after a child's use--> family ended, audited

A lost response, or two processes of one client, send a token twice. Grace is REFRESH_GRACE_S after the first use, for
at most REFRESH_GRACE_CHILDREN. Any other second use means that two parties hold the family. A branch that reaches its
second generation ends its grace siblings. Spec: §4.2 · RFC 6749 6 · D123 · protocol.md B.6
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from oauthlib.oauth2.rfc6749 import errors

from audit.event_types import EventType
from gateway.lib import clock, secrets
from oauth_ext import requested_resources
from oauth_ext.grants.token_request import (
    ConsumingGrant,
    asked_resources,
    is_entitled,
    narrowed_scopes,
    required,
    targeted,
)
from oauth_ext.models import RefreshToken, TokenFamily
from oauth_ext.services.refresh_branches import end_overtaken_branches, record_grace_use
from oauth_ext.services.token_families import end_family, end_misused_family, end_refused_family, locked_family
from orgs.signin.confirmation import ConfirmationUnavailable, PersonRefused, require_person


class Refresh(ConsumingGrant):
    """The lock on the family serialises every change of it."""

    def create_token_response(self, request: Any, token_handler: Any) -> tuple[dict[str, str], str, int]:
        try:
            # Before the transaction: the identity provider may take seconds.
            request.person_is_refused = _is_refused_by_provider(request)
        except ConfirmationUnavailable:
            fault = ProviderAwayError()
            return self._get_default_headers(), fault.json, fault.status_code
        return super().create_token_response(request, token_handler)

    def validate_token_request(self, request: Any) -> None:
        sent = required(request, "refresh_token")
        self.validate_client_authentication(request)
        self.validate_grant_type(request)
        token, family = _locked(request.client, sent)
        now = clock.now()
        in_grace = token.revoked is not None
        if token.revoked is not None:
            _check_reuse(token, family, now - token.revoked)
        _check_age(token, family, now)
        if not is_entitled(family.user_id, family.organization_id):
            end_family(family)
            raise errors.InvalidGrantError(description="The person is no longer a member of the organization.")
        if request.person_is_refused:
            end_refused_family(family)
            raise errors.InvalidGrantError(description="The identity provider no longer confirms this person.")
        request.scopes = narrowed_scopes(family.scope.split(), request.scope or "")
        request.resource = targeted(lambda: requested_resources.narrowed(family.resource, asked_resources(request)))
        if in_grace:
            record_grace_use(token, family)
        # Last, so that every refusal above leaves the token unused.
        _use(token, family, now)
        end_overtaken_branches(token)
        request.user, request.organization_id = family.user, family.organization_id
        request.family, request.refresh_parent, request.refresh_in_grace = family, token, in_grace


class ProviderAwayError(errors.OAuth2Error):
    """The identity provider does not respond. The refresh token stays unused; the client may retry."""

    error = "temporarily_unavailable"
    status_code = 503
    description = "The identity provider does not answer. Try again in a moment."


def _is_refused_by_provider(request: Any) -> bool:
    """Raises: ConfirmationUnavailable."""
    checksum = secrets.sha256(getattr(request, "refresh_token", None) or "").hex()
    user_id = RefreshToken.objects.filter(token_checksum=checksum).values_list("user_id", flat=True).first()
    try:
        # An unknown token has no person; it is refused later.
        if user_id is not None:
            require_person(user_id)
    except PersonRefused:
        return True
    return False


def _locked(client: Any, sent: str) -> tuple[RefreshToken, TokenFamily]:
    """Raises: InvalidGrantError for an unknown token, and for another client's, whose family stays unchanged."""
    unknown = errors.InvalidGrantError(description="The refresh token is unknown.")
    checksum = secrets.sha256(sent).hex()
    found = RefreshToken.objects.filter(token_checksum=checksum, application=client).first()
    if found is None:
        raise unknown
    family = locked_family(found.token_family_id)
    token = RefreshToken.objects.filter(pk=found.pk).first()  # again: the lock makes this state final
    if family is None or token is None:
        raise unknown
    return token, family


def _check_reuse(token: RefreshToken, family: TokenFamily, since: timedelta) -> None:
    """Raises: InvalidGrantError unless honest clients also cause this second use, `since` after the first."""
    children = RefreshToken.objects.filter(parent=token)
    # A used child proves that the client received it, so this sender is another party.
    if since > timedelta(seconds=settings.REFRESH_GRACE_S) or children.filter(revoked__isnull=False).exists():
        end_misused_family(family, EventType.OAUTH_REFRESH_REUSE_DETECTED, generation=token.generation)
        raise errors.InvalidGrantError(description="The refresh token was already used.")
    siblings = RefreshToken.objects.filter(token_family=family, generation=token.generation + 1, in_grace=True)
    if siblings.count() >= settings.REFRESH_GRACE_CHILDREN:
        raise errors.InvalidGrantError(description="The refresh token was already used.")


def _check_age(token: RefreshToken, family: TokenFamily, now: datetime) -> None:
    idle_until = token.created + timedelta(days=settings.REFRESH_IDLE_DAYS)
    if now >= min(idle_until, family.expires_at):
        raise errors.InvalidGrantError(description="The refresh token has expired.")


def _use(token: RefreshToken, family: TokenFamily, now: datetime) -> None:
    if token.revoked is None:
        token.revoked = now
        token.save(update_fields=["revoked"])
    family.last_used_at = now
    family.save(update_fields=["last_used_at"])
