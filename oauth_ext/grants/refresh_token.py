"""A client exchanges its refresh token for the next one. Spec: §4.2 · RFC 6749 6 · D123 · protocol.md B.6

Each token is used once. Clients with several processes, and answers that got lost, make them come twice: within the
grace period a used token gives another child, a few at most, as long as none of its children was used. Any other second
use means that two parties hold the family, and ends it.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from oauthlib.oauth2.rfc6749 import errors

from audit.event_types import EventType
from gateway.lib import clock, secrets
from oauth_ext import audiences
from oauth_ext.grants.token_request import (
    ConsumingGrant,
    asked_resources,
    is_entitled,
    narrowed_scopes,
    required,
    targeted,
)
from oauth_ext.models import RefreshToken, TokenFamily
from oauth_ext.services.token_families import end_family, end_misused_family, locked_family


class Refresh(ConsumingGrant):
    """Rotation with a grace period. The lock on the family puts everything that happens to it in one order."""

    def validate_token_request(self, request: Any) -> None:
        """Client, token, reuse, age, the person, what is asked for; then the token is used up."""
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
        request.scopes = narrowed_scopes(family.scope.split(), request.scope or "")
        request.resource = targeted(lambda: audiences.narrowed(family.resource, asked_resources(request)))
        _use(token, family, now)
        request.user, request.organization_id = family.user, family.organization_id
        request.family, request.refresh_parent, request.refresh_in_grace = family, token, in_grace


def _locked(client: Any, sent: str) -> tuple[RefreshToken, TokenFamily]:
    """The token and its family under the family's lock.

    Raises: InvalidGrantError for an unknown token as for another client's, whose family stays as it is.
    """
    unknown = errors.InvalidGrantError(description="The refresh token is unknown.")
    checksum = secrets.sha256(sent).hex()
    found = RefreshToken.objects.filter(token_checksum=checksum, application=client).first()
    if found is None:
        raise unknown
    family = locked_family(found.token_family_id)
    token = RefreshToken.objects.filter(pk=found.pk).first()  # as it is now that nobody else changes it
    if family is None or token is None:
        raise unknown
    return token, family


def _check_reuse(token: RefreshToken, family: TokenFamily, since: timedelta) -> None:
    """Raise, unless this second use, `since` after the first, is one that happens to honest clients."""
    children = RefreshToken.objects.filter(parent=token)
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
