"""The identity provider reports a sign-out: OpenID Connect Back-Channel Logout 1.0. docs/decisions/0038"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
import structlog
from django.conf import settings
from django.db import IntegrityError, transaction

from gateway.lib import clock, secrets
from orgs.models import Identity, UsedLogoutToken, User
from orgs.signin import provider

log = structlog.get_logger(__name__)
EVENT = "http://schemas.openid.net/event/backchannel-logout"
# Age at which a logout token is refused.
MAX_AGE = timedelta(minutes=5)
# How long used tokens are stored: longer than MAX_AGE, after which a token is refused anyway.
REMEMBERED_FOR = timedelta(hours=1)
_TYPES = frozenset({"logout+jwt", "jwt"})


class InvalidLogoutToken(Exception):
    """The token ends no session. The text names the fault and repeats nothing of the token."""


def end_sessions(token: str) -> None:
    """End every session of the token's person. Raises: InvalidLogoutToken, also for a used one; ProviderUnavailable."""
    claims = _verified(token)
    with transaction.atomic():
        _use_up(claims)
        identity = Identity.objects.filter(issuer=claims["iss"], sub=claims["sub"]).first()
        if identity is None:
            # The person never signed in here.
            return
        person = User.objects.select_for_update().get(pk=identity.user_id)
        person.end_sessions()
        person.save(update_fields=["password"])
        # The last confirmation counts as old: the next use asks the provider again.
        old = clock.now() - timedelta(seconds=settings.PROVIDER_WORD_S)
        Identity.objects.filter(pk=identity.pk, confirmed_at__gt=old).update(confirmed_at=old, asked_at=None)
    log.info("signed out by the identity provider", user_id=str(identity.user_id))


def _verified(token: str) -> dict[str, Any]:
    """Section 2.6. Raises: InvalidLogoutToken."""
    try:
        known = provider.current()
        kind = str(jwt.get_unverified_header(token).get("typ", "jwt")).lower().removeprefix("application/")
        claims = provider.signed_claims(known, token, required=["iss", "aud", "iat", "jti"])
    except jwt.PyJWTError as fault:
        raise InvalidLogoutToken(f"The logout token cannot be used: {type(fault).__name__}.") from None
    events = claims.get("events")
    if (
        kind not in _TYPES
        # An ID token is not accepted in place of a logout token.
        or "nonce" in claims
        or not isinstance(events, dict)
        or not isinstance(events.get(EVENT), dict)
    ):
        raise InvalidLogoutToken("This isn't a logout token.")
    if not isinstance(claims.get("sub"), str) or not claims["sub"]:
        raise InvalidLogoutToken("The logout token names no person: sub is needed, sid alone is not enough.")
    if clock.now() - datetime.fromtimestamp(claims["iat"], UTC) > MAX_AGE:
        raise InvalidLogoutToken("The logout token is too old.")
    return claims


def _use_up(claims: dict[str, Any]) -> None:
    """Raises: InvalidLogoutToken if the token was used before."""
    now = clock.now()
    UsedLogoutToken.objects.filter(used_at__lt=now - REMEMBERED_FOR).delete()
    try:
        with transaction.atomic():
            # The unique row is the lock: of parallel requests with one token, one continues.
            UsedLogoutToken.objects.create(token_sha256=secrets.sha256(f"{claims['iss']} {claims['jti']}"), used_at=now)
    except IntegrityError:
        raise InvalidLogoutToken("The logout token was used before.") from None
