"""The RS256 signing key of the demonstration identity provider, kept on disk across restarts."""

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from demo.listening import StartError, write_once

KEY_FILE = "signing-key.pem"
ALGORITHM = "RS256"


@dataclass(frozen=True, slots=True)
class SigningKey:
    """An RSA key with its `kid`."""

    private: rsa.RSAPrivateKey
    kid: str

    def __repr__(self) -> str:
        return f"SigningKey(kid={self.kid!r})"

    def sign(self, claims: Mapping[str, object]) -> str:
        return jwt.encode(dict(claims), self.private, algorithm=ALGORITHM, headers={"kid": self.kid})

    def public_jwk(self) -> dict[str, object]:
        """The public key as a JSON Web Key: kty, n, e, kid, use, alg."""
        return {**_public_numbers(self.private.public_key()), "kid": self.kid, "use": "sig", "alg": ALGORITHM}


def new_signing_key() -> SigningKey:
    return _named(rsa.generate_private_key(public_exponent=65537, key_size=2048))


def load_signing_key(directory: Path) -> SigningKey:
    """The key in `directory`, created at first use. Raises: StartError when the file is no RSA key."""
    path = directory / KEY_FILE
    try:
        pem = path.read_bytes() if path.exists() else write_once(path, _pem(new_signing_key().private))
        private = serialization.load_pem_private_key(pem, password=None)
    except (OSError, ValueError) as error:
        raise StartError(f"{path} cannot be used as the signing key: {type(error).__name__}") from error
    if not isinstance(private, rsa.RSAPrivateKey):
        raise StartError(f"{path} is not an RSA key")
    return _named(private)


def _named(private: rsa.RSAPrivateKey) -> SigningKey:
    numbers = _public_numbers(private.public_key())
    # RFC 7638 §3.2: the thumbprint covers exactly these members, in this order, without spaces.
    canonical = json.dumps({name: numbers[name] for name in ("e", "kty", "n")}, separators=(",", ":"))
    digest = hashlib.sha256(canonical.encode()).digest()
    return SigningKey(private=private, kid=base64.urlsafe_b64encode(digest).rstrip(b"=").decode())


def _public_numbers(public: rsa.RSAPublicKey) -> dict[str, object]:
    jwk = RSAAlgorithm.to_jwk(public, as_dict=True)
    return {name: jwk[name] for name in ("kty", "n", "e")}


def _pem(private: rsa.RSAPrivateKey) -> bytes:
    return private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
