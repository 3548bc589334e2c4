"""What the identity provider says of itself: endpoints and signing keys, fetched once and kept for a while."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Any

import jwt
import requests
from django.conf import settings

KEEP_S = 3600.0
AWAY_S = 5.0  # a provider that does not answer is not asked by everybody who wants to sign in, one after the other
KEYS_REFETCH_S = 30.0  # an unknown key id may be a rotation, but must not become a fetch per request


class ProviderUnavailable(Exception):
    """The provider cannot be reached, or what it serves is not what its discovery address promised."""


@dataclass(frozen=True, slots=True)
class Provider:
    """The endpoints of one OpenID provider."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    userinfo_endpoint: str
    jwks_uri: str
    end_session_endpoint: str


class _Kept:
    provider: Provider | None = None
    provider_until = 0.0
    away_until = 0.0
    keys: list[dict[str, Any]] = []
    keys_fetched_at = float("-inf")
    lock = threading.Lock()


def current() -> Provider:
    """The provider of OIDC_OP_DISCOVERY_URL.

    Raises: ProviderUnavailable.
    """
    with _Kept.lock:
        if _Kept.provider is None or time.monotonic() >= _Kept.provider_until:
            if time.monotonic() < _Kept.away_until:
                raise ProviderUnavailable("it was away a moment ago")
            try:
                _Kept.provider = _discover()
            except ProviderUnavailable:
                _Kept.away_until = time.monotonic() + AWAY_S
                raise
            _Kept.provider_until = time.monotonic() + KEEP_S
            _Kept.keys, _Kept.keys_fetched_at = [], float("-inf")
        return _Kept.provider


def signing_key(provider: Provider, token: str) -> jwt.PyJWK:
    """The provider's key that claims to have signed `token`; the keys are fetched again when it is unknown.

    Raises: ProviderUnavailable; jwt.InvalidTokenError when no key fits.
    """
    header = jwt.get_unverified_header(token)
    with _Kept.lock:
        key = _matching(header)
        if key is None and time.monotonic() - _Kept.keys_fetched_at > KEYS_REFETCH_S:
            _Kept.keys = _get_json(provider.jwks_uri).get("keys", [])
            _Kept.keys_fetched_at = time.monotonic()
            key = _matching(header)
    if key is None:
        raise jwt.InvalidKeyError("no signing key of the provider fits")
    return jwt.PyJWK(key, algorithm=settings.OIDC_RP_SIGN_ALGO)


def forget() -> None:
    """Ask the provider again at the next sign-in."""
    with _Kept.lock:
        _Kept.provider, _Kept.keys, _Kept.keys_fetched_at, _Kept.away_until = None, [], float("-inf"), 0.0


def _matching(header: dict[str, Any]) -> dict[str, Any] | None:
    usable = [
        key
        for key in _Kept.keys
        if key.get("use", "sig") == "sig" and key.get("alg", header.get("alg")) == header.get("alg")
    ]
    if "kid" in header:
        return next((key for key in usable if key.get("kid") == header["kid"]), None)
    return usable[0] if len(usable) == 1 else None  # without a kid there must be nothing to confuse


def _discover() -> Provider:
    if not settings.OIDC_OP_DISCOVERY_URL:
        raise ProviderUnavailable("no identity provider is configured")
    document = _get_json(settings.OIDC_OP_DISCOVERY_URL)
    try:
        provider = Provider(
            issuer=str(document["issuer"]),
            authorization_endpoint=str(document["authorization_endpoint"]),
            token_endpoint=str(document["token_endpoint"]),
            userinfo_endpoint=str(document["userinfo_endpoint"]),
            jwks_uri=str(document["jwks_uri"]),
            end_session_endpoint=str(document.get("end_session_endpoint", "")),
        )
    except KeyError as fault:
        raise ProviderUnavailable(f"the discovery document lacks {fault}") from fault
    # OpenID Connect Discovery 4.3: another issuer's document must not speak for this address.
    if provider.issuer.rstrip("/") + "/.well-known/openid-configuration" != settings.OIDC_OP_DISCOVERY_URL:
        raise ProviderUnavailable("the discovery document names another issuer")
    return provider


def _get_json(url: str) -> dict[str, Any]:
    try:
        response = requests.get(url, timeout=settings.OIDC_TIMEOUT, allow_redirects=False)
        response.raise_for_status()
        document = response.json()
    except (requests.RequestException, ValueError) as fault:
        raise ProviderUnavailable(type(fault).__name__) from fault
    if response.status_code != 200 or not isinstance(document, dict):
        raise ProviderUnavailable("not a JSON document")
    return document
