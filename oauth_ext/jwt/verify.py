"""Verifies an access token without a query; the caller looks up whether it was revoked.

Strict: one algorithm, three header fields, our own addresses.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from django.conf import settings

from gateway.lib import ids
from oauth_ext import resources
from oauth_ext.jwt.key_material import ALGORITHM, KeySet
from oauth_ext.jwt.mint import TYPE

LEEWAY_S = 30  # for clocks of other hosts; an expired token gets none
_HEADER_FIELDS = frozenset(
    {"alg", "typ", "kid"}
)  # no crit, jku, jwk, x5u: a header must not choose its key or its rules
_NO_TIME_CHECKS = {f"verify_{name}": False for name in ("exp", "nbf", "iat", "aud", "iss", "sub", "jti")}
_LATEST_S = 253_402_300_799  # the last second a datetime can hold


class InvalidToken(Exception):
    """`reason` is a sentence that never repeats the token."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class ExpiredToken(InvalidToken):
    """A genuine token after its time."""


class UnknownKey(InvalidToken):
    """No published key has this kid; a fresher key set may have it."""


@dataclass(frozen=True, slots=True)
class Claims:
    subject: str
    org_id: uuid.UUID
    client_id: str
    scopes: frozenset[str]
    audiences: tuple[str, ...]  # ours only; foreign ones are left out
    token_id: str
    issued_at: datetime
    expires_at: datetime


def verify(token: str, keys: KeySet, *, now: datetime) -> Claims:
    """Raises: UnknownKey, ExpiredToken, InvalidToken. Spec: RFC 9068 4 · protocol.md B.7 · reliability.md 5 (3, 4)"""
    payload = _signed_payload(token, _key_of(token, keys))
    issued_s, expires_s = _check_times(payload, now.timestamp())
    if payload.get("iss") != settings.BASE_URL:
        raise InvalidToken("The access token was issued by someone else.")
    audiences = _our_audiences(payload.get("aud"))
    if not audiences:
        raise InvalidToken("The access token is for a different service.")
    org_id = ids.parse_id(_text(payload, "org_id"))
    if org_id is None:
        raise InvalidToken("The access token names no organization.")
    return Claims(
        subject=_text(payload, "sub"),
        org_id=org_id,
        client_id=_text(payload, "client_id"),
        scopes=frozenset(_text(payload, "scope").split()),
        audiences=audiences,
        token_id=_text(payload, "jti"),
        issued_at=datetime.fromtimestamp(issued_s, UTC),
        expires_at=datetime.fromtimestamp(expires_s, UTC),
    )


def _key_of(token: str, keys: KeySet) -> EllipticCurvePublicKey:
    if not token.isascii():
        raise InvalidToken("The access token is malformed.")
    try:
        header = jwt.get_unverified_header(token)
    except jwt.PyJWTError:
        raise InvalidToken("The access token is malformed.") from None
    if header.keys() != _HEADER_FIELDS or header["alg"] != ALGORITHM or header["typ"] != TYPE:
        raise InvalidToken("This type of access token is not accepted here.")
    kid = header["kid"]
    key = keys.verifiers.get(kid) if isinstance(kid, str) else None
    if key is None:
        raise UnknownKey("The access token is signed with an unknown key.")
    return key


def _signed_payload(token: str, key: EllipticCurvePublicKey) -> dict[str, Any]:
    try:
        # Times are checked below against the caller's clock, the rest against our own addresses.
        return jwt.decode(token, key, algorithms=[ALGORITHM], options=_NO_TIME_CHECKS)  # type: ignore[arg-type]
    except jwt.PyJWTError:
        raise InvalidToken("The signature of the access token does not match.") from None


def _check_times(payload: Mapping[str, Any], now_s: float) -> tuple[int, int]:
    issued_s, expires_s = _seconds(payload, "iat"), _seconds(payload, "exp")
    if expires_s <= now_s:
        raise ExpiredToken("The access token has expired.")
    starts_s = _seconds(payload, "nbf") if "nbf" in payload else issued_s
    if max(issued_s, starts_s) > now_s + LEEWAY_S:
        raise InvalidToken("The access token is not valid yet.")
    return issued_s, expires_s


def _seconds(payload: Mapping[str, Any], claim: str) -> int:
    value = payload.get(claim)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _LATEST_S:
        raise InvalidToken(f"The access token has no usable {claim}.")
    return value


def _text(payload: Mapping[str, Any], claim: str) -> str:
    value = payload.get(claim)
    if not isinstance(value, str) or not value:
        raise InvalidToken(f"The access token has no usable {claim}.")
    return value


def _our_audiences(claim: object) -> tuple[str, ...]:
    named = [claim] if isinstance(claim, str) else claim
    if not isinstance(named, list):
        return ()
    return tuple(each for each in named if isinstance(each, str) and resources.is_ours(settings.BASE_URL, each))
