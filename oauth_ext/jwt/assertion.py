"""Pure: reads and verifies an identity assertion (ID-JAG) of an organization's identity provider.

Spec: draft-ietf-oauth-identity-assertion-authz-grant 3.1, 4.4.1 · MCP enterprise-managed authorization 7.4, 7.6
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import jwt

from gateway.lib import strict_json

TYPE = "oauth-id-jag+jwt"
# Asymmetric ones only: with a shared secret, the gateway itself could make assertions.
ALGORITHMS: tuple[str, ...] = ("RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA")
MAX_CHARACTERS = 8 * 1024
LEEWAY_S = 30  # for the clock of the provider; an expired assertion gets none
MAX_LIFETIME_S = 3600
TEXT_CHARACTERS = 255
_LATEST_S = 253_402_300_799  # the last second a datetime can hold
_MAX_DEPTH = 16
_NO_JWT = "The assertion is not a signed JWT."
_jws = jwt.PyJWS()
_COMPACT = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+){2}")
# Claims that would bind or narrow the assertion in a way that is not supported: to ignore them would widen it.
_REFUSED_CLAIMS = ("cnf", "authorization_details")


class InvalidAssertion(Exception):
    """`reason` is a sentence that never repeats the assertion."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Unverified:
    """The claims of an unproven assertion that lead to its key. Nothing relies on them otherwise."""

    algorithm: str
    key_id: str
    issuer: str


@dataclass(frozen=True, slots=True)
class Assertion:
    """A genuine assertion. `resources`, `scope`: as the provider wrote them; empty if it wrote none."""

    issuer: str
    subject: str
    token_id: str
    email: str  # empty if there is none, or the provider says that it is not verified
    tenant: str
    resources: tuple[str, ...]
    scope: str
    expires_at: datetime


def peek(text: str) -> Unverified:
    """Raises: InvalidAssertion for anything that is no assertion with an allowed algorithm and a key id."""
    if len(text) > MAX_CHARACTERS:
        raise InvalidAssertion("The assertion is too long.")
    # The library takes a payload with dots in it.
    if not _COMPACT.fullmatch(text):
        raise InvalidAssertion(_NO_JWT)
    try:
        found = _jws.decode_complete(text, options={"verify_signature": False})
    except jwt.PyJWTError:
        raise InvalidAssertion(_NO_JWT) from None
    header, claims = found["header"], _claims(found["payload"])
    if header.get("typ") != TYPE:
        raise InvalidAssertion(f"The type of the assertion must be {TYPE}.")
    algorithm, key_id = header.get("alg"), header.get("kid")
    if algorithm not in ALGORITHMS:
        raise InvalidAssertion("The signature algorithm of the assertion is not allowed.")
    if "crit" in header or not isinstance(key_id, str) or not key_id:
        raise InvalidAssertion("The header of the assertion is not accepted.")
    return Unverified(algorithm, key_id, _text(claims, "iss"))


def verify(text: str, key: jwt.PyJWK, *, issuer: str, audience: str, client_id: str, now: datetime) -> Assertion:
    """`key`: bound to its algorithm; one of `issuer`. Raises: InvalidAssertion."""
    try:
        found = _jws.decode_complete(text, key, algorithms=[key.algorithm_name])
    except jwt.PyJWTError:
        raise InvalidAssertion("The signature of the assertion does not match.") from None
    claims = _claims(found["payload"])
    # A key proves nothing about another issuer's people.
    if claims.get("iss") != issuer:
        raise InvalidAssertion("The assertion comes from another issuer.")
    if any(name in claims for name in _REFUSED_CLAIMS):
        raise InvalidAssertion("The assertion requires a proof of possession or details that are not supported.")
    if claims.get("aud") not in (audience, [audience]):
        raise InvalidAssertion("The assertion is for another authorization server.")
    if claims.get("client_id") != client_id:
        raise InvalidAssertion("The assertion is for another client.")
    return Assertion(
        issuer=issuer,
        subject=_text(claims, "sub"),
        token_id=_text(claims, "jti"),
        email=_email(claims),
        tenant=_text(claims, "tenant") if "tenant" in claims else "",
        resources=_resources(claims.get("resource")),
        scope=_optional_text(claims, "scope"),
        expires_at=datetime.fromtimestamp(_checked_end_s(claims, now.timestamp()), UTC),
    )


def _claims(payload: bytes) -> Mapping[str, Any]:
    """Raises: InvalidAssertion, also for JSON that two parsers could read differently."""
    try:
        claims = strict_json.loads(payload, max_depth=_MAX_DEPTH)
    except strict_json.StrictJSONError:
        raise InvalidAssertion(_NO_JWT) from None
    if not isinstance(claims, dict):
        raise InvalidAssertion(_NO_JWT)
    return claims


def _checked_end_s(claims: Mapping[str, Any], now_s: float) -> int:
    issued_s, expires_s = _seconds(claims, "iat"), _seconds(claims, "exp")
    if expires_s <= now_s:
        raise InvalidAssertion("The assertion has expired.")
    starts_s = _seconds(claims, "nbf") if "nbf" in claims else issued_s
    if max(issued_s, starts_s) > now_s + LEEWAY_S:
        raise InvalidAssertion("The assertion is not valid yet.")
    if expires_s - issued_s > MAX_LIFETIME_S:
        raise InvalidAssertion("The assertion is valid for too long: an hour at most.")
    return expires_s


def _email(claims: Mapping[str, Any]) -> str:
    # A provider that says nothing of it answers for its own directory; the domain must be the organization's.
    if claims.get("email_verified", True) is not True:
        return ""
    return _optional_text(claims, "email")


def _resources(claim: object) -> tuple[str, ...]:
    named: Collection[object] = [] if claim is None else claim if isinstance(claim, list) else [claim]
    if not all(isinstance(each, str) and each for each in named) or (claim is not None and not named):
        raise InvalidAssertion("The assertion has no usable resource.")
    return tuple(map(str, named))


def _seconds(claims: Mapping[str, Any], name: str) -> int:
    value = claims.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _LATEST_S:
        raise InvalidAssertion(f"The assertion has no usable {name}.")
    return value


def _text(claims: Mapping[str, Any], name: str) -> str:
    value = claims.get(name)
    if not isinstance(value, str) or not value or len(value) > TEXT_CHARACTERS:
        raise InvalidAssertion(f"The assertion has no usable {name}.")
    return value


def _optional_text(claims: Mapping[str, Any], name: str) -> str:
    value = claims.get(name, "")
    if not isinstance(value, str):
        raise InvalidAssertion(f"The assertion has no usable {name}.")
    return value
