"""Makes RFC 9068 access tokens and opaque refresh tokens. The settings name these two functions."""

from __future__ import annotations

import uuid
from typing import Any

import jwt
from django.conf import settings

from gateway.lib import clock, secrets
from oauth_ext import resources
from oauth_ext.jwt import key_material, keys

TYPE = "at+jwt"


def access_token(request: Any) -> str:
    """Raises: ValueError for a request without organization or subject. Spec: §5 (4) · D121, D135"""
    organization_id = getattr(request, "organization_id", None)
    if organization_id is None:
        raise ValueError("a token belongs to an organization")
    now_s = int(clock.now().timestamp())
    audiences = list(request.resource or []) or [resources.unified(settings.BASE_URL)]
    claims = {
        "iss": settings.BASE_URL,
        "sub": _subject(request),
        "aud": audiences[0] if len(audiences) == 1 else audiences,
        "client_id": request.client.client_id,
        "scope": " ".join(request.scopes),
        "org_id": str(organization_id),
        "jti": uuid.uuid4().hex,
        "iat": now_s,
        "exp": now_s + (getattr(request, "expires_in", None) or settings.ACCESS_TOKEN_LIFETIME_S),
    }
    if request.user is not None and request.client.is_service_client:
        claims["act"] = {"sub": request.client.subject}  # RFC 8693 4.1
    signer = keys.load_key_set().signer
    headers = {"typ": TYPE, "kid": signer.kid}
    return jwt.encode(claims, signer.private_key, algorithm=key_material.ALGORITHM, headers=headers)


def refresh_token(request: Any, refresh_token: bool = True) -> str:
    """Returns 256 random bits; oauthlib passes the second argument, which has no effect."""
    return secrets.random_url_safe()


def _subject(request: Any) -> str:
    """Returns the person of the grant, else the service client, also when a person approved it. Spec: §4.2"""
    if request.user is not None:
        return str(request.user.pk)
    if not request.client.is_service_client:
        raise ValueError("a token of a public client belongs to a person")
    return str(request.client.subject)
