"""The identity provider's endpoints and signing keys, fetched from its discovery address and kept for KEEP_S."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jwt
import requests
from django.conf import settings

# Seconds. A key that the provider withdraws is trusted no longer than this.
KEEP_S = 3600.0
# Seconds without a request after a failed one, so that waiting sign-ins do not ask one by one.
AWAY_S = 5.0
# Seconds of difference allowed between the provider's clock and ours.
LEEWAY_S = 30
# Seconds between fetches: an unknown key id may be a rotation, but must not cause a fetch per request.
KEYS_REFETCH_S = 30.0


class ProviderUnavailable(Exception):
    """The provider cannot be reached, or its documents are not valid."""


@dataclass(frozen=True, slots=True)
class Provider:
    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    userinfo_endpoint: str
    jwks_uri: str
    end_session_endpoint: str
    offers_offline_access: bool = False


class _Kept:
    """The provider's documents in this process."""

    # Assignments are atomic, so reads take no lock; only callers that need a fetch wait.
    provider: Provider | None = None
    provider_until = 0.0
    away_until = 0.0
    keys: list[dict[str, Any]] = []
    keys_fetched_at = float("-inf")
    # One fetch of each at a time (single flight).
    discovery = threading.Lock()
    key_set = threading.Lock()


def current() -> Provider:
    """The provider of OIDC_OP_DISCOVERY_URL. Raises: ProviderUnavailable."""
    known = _Kept.provider
    if known is not None and time.monotonic() < _Kept.provider_until:
        return known
    # While one thread fetches, the others use the last result if there is one.
    if not _Kept.discovery.acquire(blocking=known is None, timeout=-1 if known else settings.OIDC_TIMEOUT * 2):
        if known is not None:
            return known
        raise ProviderUnavailable("others wait for it already")
    try:
        return _discovered()
    finally:
        _Kept.discovery.release()


def _discovered() -> Provider:
    """Under the lock: the previous thread's result, or a new one, or the last one while the provider is away."""
    known, now = _Kept.provider, time.monotonic()
    if known is not None and now < _Kept.provider_until:
        return known
    if now < _Kept.away_until:
        if known is not None:
            return known
        raise ProviderUnavailable("it was away a moment ago")
    try:
        found = _discover()
    except ProviderUnavailable:
        _Kept.away_until = time.monotonic() + AWAY_S
        if known is not None:
            return known
        raise
    if known is None or known.jwks_uri != found.jwks_uri:
        _Kept.keys, _Kept.keys_fetched_at = [], float("-inf")
    _Kept.provider, _Kept.provider_until = found, time.monotonic() + KEEP_S
    return found


def signing_key(provider: Provider, token: str) -> jwt.PyJWK:
    """The key that the token's header names. Raises: ProviderUnavailable; jwt.PyJWTError if no key fits."""
    header = jwt.get_unverified_header(token)
    key = _matching(header) if time.monotonic() - _Kept.keys_fetched_at < KEEP_S else None
    if key is None:
        if not _Kept.key_set.acquire(timeout=settings.OIDC_TIMEOUT * 2):
            raise ProviderUnavailable("others wait for its keys already")
        try:
            key = _fetched_key(provider, header)
        finally:
            _Kept.key_set.release()
    if key is None:
        raise jwt.InvalidKeyError("no signing key of the provider fits")
    return jwt.PyJWK(key, algorithm=settings.OIDC_RP_SIGN_ALGO)


def signed_claims(provider: Provider, token: str, *, required: Sequence[str] = ()) -> dict[str, Any]:
    """Verify signature, issuer, audience and times of a provider's token and return its claims.

    Raises: ProviderUnavailable; jwt.PyJWTError, also if a `required` claim is missing.
    """
    claims: dict[str, Any] = jwt.decode(
        token,
        signing_key(provider, token),
        algorithms=[settings.OIDC_RP_SIGN_ALGO],
        audience=settings.OIDC_RP_CLIENT_ID,
        issuer=provider.issuer,
        leeway=LEEWAY_S,
        options={"require": list(required)},
    )
    return claims


def _fetched_key(provider: Provider, header: dict[str, Any]) -> dict[str, Any] | None:
    """Under the lock: from the previous thread's key set, or from a new one."""
    age = time.monotonic() - _Kept.keys_fetched_at
    key = _matching(header)
    if age < KEYS_REFETCH_S or (key is not None and age < KEEP_S):
        return key
    keys = _get_json(provider.jwks_uri).get("keys", [])
    _Kept.keys = [each for each in keys if isinstance(each, dict)] if isinstance(keys, list) else []
    _Kept.keys_fetched_at = time.monotonic()
    return _matching(header)


def forget() -> None:
    """Fetch everything again at the next sign-in."""
    _Kept.provider, _Kept.keys, _Kept.keys_fetched_at, _Kept.away_until = None, [], float("-inf"), 0.0


def _matching(header: dict[str, Any]) -> dict[str, Any] | None:
    usable = [
        key
        for key in _Kept.keys
        if key.get("use", "sig") == "sig" and key.get("alg", header.get("alg")) == header.get("alg")
    ]
    if "kid" in header:
        return next((key for key in usable if key.get("kid") == header["kid"]), None)
    # Without a kid the key must be unambiguous.
    return usable[0] if len(usable) == 1 else None


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
            end_session_endpoint=str(document.get("end_session_endpoint") or ""),
            offers_offline_access="offline_access" in (document.get("scopes_supported") or ()),
        )
    except (KeyError, TypeError) as fault:
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
