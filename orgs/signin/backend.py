"""The identity provider's answer, turned into a person. Only (issuer, sub) identifies a person."""

from __future__ import annotations

from typing import Any

import jwt
import structlog
from django.conf import settings
from django.core.exceptions import SuspiciousOperation
from django.http import HttpRequest
from mozilla_django_oidc.auth import OIDCAuthenticationBackend

from gateway.lib.guarded_client import Response
from orgs.models import User
from orgs.services.identities import person_for_identity
from orgs.signin import provider
from orgs.signin.provider import ProviderUnavailable

log = structlog.get_logger(__name__)
_REQUIRED_CLAIMS = ["iss", "sub", "aud", "exp", "iat"]


class IdentityBackend(OIDCAuthenticationBackend):
    """The library's code flow with stricter checks: issuer, audience, no match by e-mail, no 500s.

    Spec: §5 (1) · D47
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # The library expects fixed endpoints here; `authenticate` sets them from discovery.
        self.OIDC_RP_CLIENT_ID = settings.OIDC_RP_CLIENT_ID
        self.OIDC_RP_CLIENT_SECRET = settings.OIDC_RP_CLIENT_SECRET
        self.OIDC_RP_SIGN_ALGO = settings.OIDC_RP_SIGN_ALGO
        self.OIDC_RP_IDP_SIGN_KEY = None
        self.UserModel = User
        self._refresh_token = ""

    def authenticate(self, request: HttpRequest | None, **kwargs: Any) -> User | None:
        """None if refused; the log has the reason, never the code or a token."""
        # Only the callback passes a nonce: a code in another form's address must not cause a request to the provider.
        if not kwargs.get("nonce"):
            return None
        try:
            known = provider.current()
            self.OIDC_OP_TOKEN_ENDPOINT = known.token_endpoint
            self.OIDC_OP_USER_ENDPOINT = known.userinfo_endpoint
            user: User | None = super().authenticate(request, **kwargs)
        except (jwt.PyJWTError, SuspiciousOperation, ProviderUnavailable) as fault:
            log.warning("sign-in refused", reason=f"{type(fault).__name__}: {fault}")
            if request is not None and isinstance(fault, ProviderUnavailable):
                request.provider_is_away = True  # type: ignore[attr-defined]
        except (ValueError, KeyError) as fault:
            # Only the exception's type: its text may quote the provider's answer.
            log.warning("sign-in failed at the identity provider", reason=type(fault).__name__)
        else:
            return user
        return None

    def get_user(self, user_id: Any) -> User | None:
        # The library does not check is_active; a deactivated person's session ends here.
        user: User | None = super().get_user(user_id)
        return user if user is not None and user.is_active else None

    def get_token(self, payload: dict[str, Any]) -> dict[str, Any]:
        # The library drops the refresh token. An instance serves one sign-in, so an attribute can hold it.
        tokens = _accepted(provider.ask("POST", self.OIDC_OP_TOKEN_ENDPOINT, form=payload))
        refresh_token = tokens.get("refresh_token")
        self._refresh_token = refresh_token if isinstance(refresh_token, str) else ""
        return tokens

    def get_userinfo(self, access_token: str, id_token: str, payload: dict[str, Any]) -> dict[str, Any]:
        return _accepted(provider.ask("GET", self.OIDC_OP_USER_ENDPOINT, bearer=access_token))

    def verify_token(self, token: str, **kwargs: Any) -> dict[str, Any]:
        """Verify signature, issuer, audience, lifetime and nonce; return the ID token's claims."""
        if not isinstance(token, str):
            raise SuspiciousOperation("no ID token in the answer")
        known = provider.current()
        claims = provider.signed_claims(known, token, required=_REQUIRED_CLAIMS)
        if claims.get("azp", settings.OIDC_RP_CLIENT_ID) != settings.OIDC_RP_CLIENT_ID:
            raise SuspiciousOperation("the ID token is for another client")
        nonce = kwargs.get("nonce")
        if not nonce or claims.get("nonce") != nonce:
            raise SuspiciousOperation("the nonce does not match")
        return claims

    def get_or_create_user(self, access_token: str, id_token: str, payload: dict[str, Any]) -> User | None:
        claims = {**self.get_userinfo(access_token, id_token, payload)}
        if claims.get("sub") != payload["sub"]:
            raise SuspiciousOperation("userinfo speaks of another subject")  # OpenID Connect Core 5.3.2
        return person_for_identity(
            issuer=payload["iss"],
            sub=payload["sub"],
            claims={**payload, **claims},
            refresh_token=self._refresh_token,
        )


def _accepted(answer: Response) -> dict[str, Any]:
    """The JSON of an endpoint. Raises: ProviderUnavailable; SuspiciousOperation; ValueError."""
    if answer.status >= 500:
        raise ProviderUnavailable(f"status {answer.status}")
    # A refused code is an answer and no outage: strangers can send codes.
    if answer.status != 200:
        raise SuspiciousOperation(f"the provider answered with status {answer.status}")
    return provider.json_object(answer)
