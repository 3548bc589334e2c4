"""Pure: P-256 signing keys and their stored, configured and public forms."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_der_private_key,
)

from gateway.lib import secrets

ALGORITHM = "ES256"  # the only accepted algorithm. D121
_KID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_COORDINATE_BYTES = 32  # P-256


@dataclass(frozen=True, slots=True)
class SigningPair:
    kid: str
    private_key: ec.EllipticCurvePrivateKey = field(repr=False)

    def public_jwk(self) -> dict[str, str]:
        numbers = self.private_key.public_key().public_numbers()
        return {
            "kty": "EC",
            "crv": "P-256",
            "x": _base64url(numbers.x),
            "y": _base64url(numbers.y),
            "kid": self.kid,
            "alg": ALGORITHM,
            "use": "sig",
        }

    def to_der(self) -> bytes:
        """Returns PKCS8 DER, unencrypted: only to be sealed, or printed for the operator."""
        return self.private_key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())


@dataclass(frozen=True, slots=True)
class KeySet:
    # Signs now; `verifiers` holds every published key by kid.
    signer: SigningPair
    verifiers: Mapping[str, ec.EllipticCurvePublicKey] = field(repr=False)
    public_jwks: Mapping[str, object] = field(repr=False)


def key_set(signer: SigningPair, published: Sequence[SigningPair]) -> KeySet:
    """`published` must include `signer`."""
    return KeySet(
        signer=signer,
        verifiers=MappingProxyType({pair.kid: pair.private_key.public_key() for pair in published}),
        public_jwks=MappingProxyType({"keys": [pair.public_jwk() for pair in published]}),
    )


def generate(now: datetime) -> SigningPair:
    # The kid starts with the day of creation, for operators.
    return SigningPair(f"{now:%Y%m%d}-{secrets.random_base62(8)}", ec.generate_private_key(ec.SECP256R1()))


def from_der(kid: str, der: bytes) -> SigningPair:
    """Raises: ValueError unless `der` is a P-256 private key; the message never repeats it."""
    try:
        private_key = load_der_private_key(der, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ValueError(f"key {kid} is not a PKCS8 private key") from None
    if not isinstance(private_key, ec.EllipticCurvePrivateKey) or not isinstance(private_key.curve, ec.SECP256R1):
        raise ValueError(f"key {kid} must be a P-256 key")
    return SigningPair(kid, private_key)


def parse_setting(text: str) -> tuple[SigningPair, ...]:
    """`kid:base64` of PKCS8 DER, comma-separated; the first signs. Raises: ValueError, which never repeats a key."""
    pairs: dict[str, SigningPair] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        kid, separator, encoded = part.partition(":")
        if not separator or not _KID.fullmatch(kid):
            raise ValueError("each entry must be kid:base64, the kid made of letters, digits, dashes and underscores")
        if kid in pairs:
            raise ValueError(f"kid {kid} appears twice")
        try:
            der = base64.b64decode(encoded, validate=True)
        except binascii.Error:
            raise ValueError(f"key {kid} is not base64") from None
        pairs[kid] = from_der(kid, der)
    if not pairs:
        raise ValueError("at least one kid:base64 entry is needed")
    return tuple(pairs.values())


def to_setting(pairs: Sequence[SigningPair]) -> str:
    """Returns a value for `parse_setting`. It is secret."""
    return ",".join(f"{pair.kid}:{base64.b64encode(pair.to_der()).decode()}" for pair in pairs)


def _base64url(coordinate: int) -> str:
    return base64.urlsafe_b64encode(coordinate.to_bytes(_COORDINATE_BYTES, "big")).rstrip(b"=").decode()
