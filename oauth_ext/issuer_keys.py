"""The signing keys of trusted issuers, kept by each process for KEEP_S.

A key that the issuer withdraws is trusted no longer than that. An unknown key id may be a rotation: it leads to a
fetch, at most one in REFETCH_S for each issuer. A request that waits holds a thread, so few may wait at once, and fewer
of one organization.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any
from uuid import UUID

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from django.conf import settings

from gateway.lib import guarded_client, strict_json
from gateway.lib.database_threads import give_connections_back
from gateway.lib.guarded_client import OutboundError
from gateway.lib.outbound import AddressRefused, check_url
from gateway.lib.sentences import sentence
from gateway.lib.shared_slots import SharedSlots, SlotResult
from oauth_ext.jwt.assertion import ALGORITHMS

KEEP_S = 3600.0
REFETCH_S = 30.0
TIMEOUT_S = 5.0
MAX_BYTES = 256 * 1024  # of one document
MIN_RSA_BITS = 2048
_waits: SharedSlots[UUID] = SharedSlots(
    size=settings.ISSUER_KEY_WAITS, of_owner=settings.ISSUER_KEY_WAITS_OF_ORGANIZATION
)
_DISCOVERY = "/.well-known/openid-configuration"


class KeysUnavailable(Exception):
    """The issuer does not answer, or not with usable documents. `reason` is a sentence without their content."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class KeysRefused(KeysUnavailable):
    """The keys are at an address that the gateway does not ask. Another try cannot help."""


class UnknownKey(Exception):
    """The issuer publishes no such key."""


class IssuerKeys:
    """The keys of one issuer in this process."""

    def __init__(self, organization_id: UUID, issuer: str, jwks_url: str) -> None:
        self._organization_id, self._issuer, self._jwks_url = organization_id, issuer, jwks_url
        # One fetch at a time; only callers whose key is unknown wait for it.
        self._fetching = threading.Lock()
        self._keys: tuple[Mapping[str, Any], ...] = ()
        self._until_s = self._may_fetch_at_s = 0.0

    def find(self, key_id: str, algorithm: str) -> jwt.PyJWK:
        """Raises: UnknownKey; KeysUnavailable."""
        found = self._known(key_id, algorithm)
        if found is not None:
            return found
        with wait(self._organization_id), self._fetching:
            # Another thread may have fetched them meanwhile.
            found = self._known(key_id, algorithm)
            if found is None:
                self._fetch()
                found = self._known(key_id, algorithm)
        if found is None:
            raise UnknownKey
        return found

    def _known(self, key_id: str, algorithm: str) -> jwt.PyJWK | None:
        if time.monotonic() >= self._until_s:
            return None
        for each in self._keys:
            if each.get("kid") == key_id and each.get("alg", algorithm) == algorithm:
                return usable_key(each, algorithm)
        return None

    def _fetch(self) -> None:
        """Raises: UnknownKey when the keys were fetched a moment ago; KeysUnavailable."""
        now_s = time.monotonic()
        if now_s < self._may_fetch_at_s:
            if now_s < self._until_s:
                raise UnknownKey
            raise KeysUnavailable(sentence("The keys of the issuer could not be read a moment ago."))
        # Also after a failure: callers must not ask a provider that is away one by one.
        self._may_fetch_at_s = now_s + REFETCH_S
        self._keys = tuple(published_keys(self._jwks_url or discovered_jwks_url(self._issuer)))
        self._until_s = time.monotonic() + KEEP_S


@lru_cache(maxsize=1_000)
def keys_of(trust_id: UUID, organization_id: UUID, issuer: str, jwks_url: str) -> IssuerKeys:
    """By trust, so that no organization's address serves the keys of another one's issuer."""
    return IssuerKeys(organization_id, issuer, jwks_url)


@contextmanager
def wait(organization_id: UUID) -> Iterator[None]:
    """For the block, in which a thread may wait for an issuer. Raises: KeysUnavailable when enough of them wait."""
    if _waits.take(organization_id) is not SlotResult.TAKEN:
        raise KeysUnavailable(sentence("Too many requests are already waiting for the keys of an issuer."))
    try:
        # There are fewer connections than threads.
        give_connections_back()
        yield
    finally:
        _waits.give_back(organization_id)


def forget() -> None:
    """Keep nothing: for tests."""
    keys_of.cache_clear()


def discovered_jwks_url(issuer: str) -> str:
    """Raises: KeysUnavailable."""
    document = _document(issuer.rstrip("/") + _DISCOVERY)
    # OpenID Connect Discovery 4.3: another issuer's document must not speak for this one.
    if document.get("issuer") != issuer:
        raise KeysUnavailable(sentence("The discovery document names another issuer."))
    found = document.get("jwks_uri")
    if not isinstance(found, str):
        raise KeysUnavailable(sentence("The discovery document names no keys."))
    return found


def published_keys(jwks_url: str) -> list[Mapping[str, Any]]:
    """Those that may sign, at least one. Raises: KeysUnavailable."""
    keys = _document(jwks_url).get("keys")
    found: list[Mapping[str, Any]] = [
        each
        for each in (keys if isinstance(keys, list) else [])
        if isinstance(each, dict) and each.get("use", "sig") == "sig" and each.get("kty") in {"RSA", "EC", "OKP"}
    ]
    if not found:
        raise KeysUnavailable(sentence("The issuer publishes no key for signatures."))
    return found


def usable_key(key: Mapping[str, Any], algorithm: str) -> jwt.PyJWK | None:
    """The key for exactly this algorithm; None for another kind of key, or one that is too short."""
    if algorithm not in ALGORITHMS:
        return None
    try:
        found = jwt.PyJWK(dict(key), algorithm)
    except jwt.PyJWTError:
        return None
    if isinstance(found.key, RSAPublicKey) and found.key.key_size < MIN_RSA_BITS:
        return None
    # A published private key would let anyone sign.
    return found if hasattr(found.key, "verify") and not hasattr(found.key, "sign") else None


def _document(url: str) -> dict[str, Any]:
    allow_private = settings.ALLOW_PRIVATE_ENDPOINTS
    try:
        check_url(url, allow_private=allow_private, own_url=settings.BASE_URL)
        answer = guarded_client.send("GET", url, allow_private=allow_private, timeout_s=TIMEOUT_S, max_bytes=MAX_BYTES)
    except AddressRefused:
        raise KeysRefused(sentence("The keys of the issuer are at an address that is not allowed.")) from None
    except OutboundError:
        raise KeysUnavailable(sentence("The issuer does not respond.")) from None
    if answer.status != 200:
        raise KeysUnavailable(sentence("The issuer responded with status %(status)s.", status=answer.status))
    try:
        document = strict_json.loads(answer.body, max_depth=16)
    except strict_json.StrictJSONError:
        raise KeysUnavailable(sentence("The response of the issuer is not JSON.")) from None
    if not isinstance(document, dict):
        raise KeysUnavailable(sentence("The response of the issuer is not JSON."))
    return document
