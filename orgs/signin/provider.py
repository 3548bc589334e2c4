"""The identity provider's endpoints and signing keys, fetched from its discovery address and kept for KEEP_S."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jwt
from django.conf import settings

from gateway.lib import guarded_client
from gateway.lib.guarded_client import OutboundError
from gateway.lib.outbound import AddressRefused

# Seconds. A key that the provider withdraws is trusted no longer than this.
KEEP_S = 3600.0
# Seconds without a request after a failed one, so that waiting sign-ins do not ask one by one.
AWAY_S = 5.0
# Seconds of difference allowed between the provider's clock and ours.
LEEWAY_S = 30
# Seconds between fetches: an unknown key id may be a rotation, but must not cause a fetch per request.
KEYS_REFETCH_S = 30.0
MAX_BYTES = 1024 * 1024  # of one document
# The id of a key without one. PyJWKClient leaves such keys out.
_UNNAMED = "unnamed"


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
    # One fetch at a time (single flight).
    discovery = threading.Lock()


class ProviderKeys(jwt.PyJWKClient):
    """The provider's signing keys, kept for KEEP_S."""

    def __init__(self, uri: str) -> None:
        super().__init__(uri, lifespan=KEEP_S, cooldown_duration=KEYS_REFETCH_S)
        self._fetching = threading.Lock()
        self._may_fetch_at = 0.0

    def get_signing_key(self, kid: str | None) -> jwt.PyJWK:
        """Only callers whose key is unknown wait for a fetch. Raises: ProviderUnavailable; jwt.PyJWTError."""
        kept = self.jwk_set_cache.get() if self.jwk_set_cache else None
        known = self.match_kid(kept.keys, kid) if kept else None
        if known is not None:
            return known
        if not self._fetching.acquire(timeout=settings.OIDC_TIMEOUT * 2):
            raise ProviderUnavailable("others wait for its keys already")
        try:
            if time.monotonic() < self._may_fetch_at:
                raise jwt.PyJWKClientError("the provider had no usable key a moment ago")
            return super().get_signing_key(kid)  # type: ignore[arg-type]
        except jwt.PyJWKSetError:
            # The library's own cooldown begins with a usable set only.
            self._may_fetch_at = time.monotonic() + KEYS_REFETCH_S
            raise
        finally:
            self._fetching.release()

    def fetch_data(self) -> dict[str, Any]:
        """The keys that may sign with OIDC_RP_SIGN_ALGO. Raises: ProviderUnavailable."""
        algorithm, keys = settings.OIDC_RP_SIGN_ALGO, _get_json(self.uri).get("keys")
        return {
            "keys": [
                {"kid": _UNNAMED, "alg": algorithm, **key}
                for key in (keys if isinstance(keys, list) else [])
                if isinstance(key, dict) and key.get("use", "sig") == "sig" and key.get("alg", algorithm) == algorithm
            ]
        }

    @staticmethod
    def match_kid(signing_keys: list[jwt.PyJWK], kid: str | None) -> jwt.PyJWK | None:
        """Without a kid the key must be unambiguous. OpenID Connect Core 10.1"""
        if kid is None:
            return signing_keys[0] if len(signing_keys) == 1 else None
        return jwt.PyJWKClient.match_kid(signing_keys, kid)


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
    _Kept.provider, _Kept.provider_until = found, time.monotonic() + KEEP_S
    return found


def signing_key(provider: Provider, token: str) -> jwt.PyJWK:
    """The key that the token's header names. Raises: ProviderUnavailable; jwt.PyJWTError if no key fits."""
    return _keys(provider.jwks_uri).get_signing_key(jwt.get_unverified_header(token).get("kid"))


@lru_cache(maxsize=1)
def _keys(uri: str) -> ProviderKeys:
    return ProviderKeys(uri)


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


def asked_now() -> Provider:
    """The provider as it answers now, with its keys read; nothing is kept. Raises: ProviderUnavailable."""
    found = _discover()
    if not ProviderKeys(found.jwks_uri).fetch_data()["keys"]:
        raise ProviderUnavailable(f"it publishes no key for {settings.OIDC_RP_SIGN_ALGO}")
    return found


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


def ask(method: str, url: str, *, bearer: str = "", form: Mapping[str, str] | None = None) -> guarded_client.Response:
    """Send a request to one of the provider's endpoints. Raises: ProviderUnavailable."""
    headers = {"Authorization": f"Bearer {bearer}"} if bearer else None
    try:
        # The operator chose the provider, so it may be in the private network.
        return guarded_client.send(
            method,
            url,
            allow_private=True,
            timeout_s=settings.OIDC_TIMEOUT,
            max_bytes=MAX_BYTES,
            headers=headers,
            form=form,
        )
    except (AddressRefused, OutboundError) as fault:
        raise ProviderUnavailable(type(fault).__name__) from fault


def json_object(answer: guarded_client.Response) -> dict[str, Any]:
    """Raises: ValueError."""
    found = json.loads(answer.body)
    if not isinstance(found, dict):
        raise ValueError("no JSON object")
    return found


def _get_json(url: str) -> dict[str, Any]:
    answer = ask("GET", url)
    if answer.status != 200:
        raise ProviderUnavailable(f"status {answer.status}")
    try:
        return json_object(answer)
    except ValueError:
        raise ProviderUnavailable("not a JSON document") from None
