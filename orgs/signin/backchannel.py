"""The provider reports by itself that a person signed out there: OpenID Connect Back-Channel Logout 1.0.

See docs/decisions/0013.
"""

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
MAX_AGE = timedelta(minutes=5)
REMEMBERED_FOR = timedelta(hours=1)  # longer than a token is believed
_TYPES = frozenset({"logout+jwt", "jwt"})


class InvalidLogoutToken(Exception):
    """The token ends no session; the text names the fault and repeats nothing of the token."""


def end_sessions(token: str) -> None:
    """Every session of the person whom the token names has ended; the provider's word on them counts as old.

    Raises: InvalidLogoutToken, also for one that was used; ProviderUnavailable.
    """
    claims = _verified(token)
    with transaction.atomic():
        _use_up(claims)
        identity = Identity.objects.filter(issuer=claims["iss"], sub=claims["sub"]).first()
        if identity is None:
            return  # no person of ours
        person = User.objects.select_for_update().get(pk=identity.user_id)
        person.end_sessions()
        person.save(update_fields=["password"])
        old = clock.now() - timedelta(seconds=settings.PROVIDER_WORD_S)
        Identity.objects.filter(pk=identity.pk, confirmed_at__gt=old).update(confirmed_at=old, asked_at=None)
    log.info("signed out by the identity provider", user_id=str(identity.user_id))


def _verified(token: str) -> dict[str, Any]:
    """Section 2.6: signature, issuer, audience, time, event; and it is no ID token."""
    try:
        known = provider.current()
        kind = str(jwt.get_unverified_header(token).get("typ", "jwt")).lower().removeprefix("application/")
        claims = provider.signed_claims(known, token, required=["iss", "aud", "iat", "jti"])
    except jwt.PyJWTError as fault:
        raise InvalidLogoutToken(f"The logout token cannot be used: {type(fault).__name__}.") from None
    events = claims.get("events")
    if (
        kind not in _TYPES
        or "nonce" in claims
        or not isinstance(events, dict)
        or not isinstance(events.get(EVENT), dict)
    ):
        raise InvalidLogoutToken("This is no logout token.")
    if not isinstance(claims.get("sub"), str) or not claims["sub"]:
        raise InvalidLogoutToken("The logout token names no person: sub is needed, sid alone is not enough.")
    if clock.now() - datetime.fromtimestamp(claims["iat"], UTC) > MAX_AGE:
        raise InvalidLogoutToken("The logout token is too old.")
    return claims


def _use_up(claims: dict[str, Any]) -> None:
    """The unique row is the lock: of many that bring one token, one goes on."""
    now = clock.now()
    UsedLogoutToken.objects.filter(used_at__lt=now - REMEMBERED_FOR).delete()
    try:
        with transaction.atomic():
            UsedLogoutToken.objects.create(token_sha256=secrets.sha256(f"{claims['iss']} {claims['jti']}"), used_at=now)
    except IntegrityError:
        raise InvalidLogoutToken("The logout token was used before.") from None
