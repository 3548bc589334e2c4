"""Pure: AES-256-GCM with versioned key-encryption keys. `aad` is the identity of the row. Spec: D68"""

from __future__ import annotations

import base64
import hmac
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

# The keyring encrypts data keys with the keys of CREDENTIAL_KEYS, a data key encrypts rows. Because the row's identity
# is authenticated, a ciphertext copied into another row, organization or vendor does not open.
KEY_BYTES = 32
KEY_ID_MAX_CHARACTERS = 64  # width of the columns that hold a key id
NONCE_BYTES = 12
TAG_BYTES = 16
FORMAT_V1 = b"\x01"


class CryptoError(Exception):
    """A key is unknown or a ciphertext does not open. Carries no plaintext and no key."""


class UnknownKey(CryptoError):
    """Most often the key was removed from CREDENTIAL_KEYS before the rotation was finished."""


def seal(key: bytes, plaintext: bytes, aad: bytes) -> bytes:
    """Returns format byte, random 96-bit nonce, ciphertext with tag."""
    nonce = os.urandom(NONCE_BYTES)
    return FORMAT_V1 + nonce + _cipher(key).encrypt(nonce, plaintext, FORMAT_V1 + aad)


def open_sealed(key: bytes, sealed: bytes, aad: bytes) -> bytes:
    """Decrypt the result of `seal` for the same key and row. Raises: CryptoError."""
    if sealed[:1] != FORMAT_V1 or len(sealed) < 1 + NONCE_BYTES + TAG_BYTES:
        raise CryptoError("unknown format")
    nonce, body = sealed[1 : 1 + NONCE_BYTES], sealed[1 + NONCE_BYTES :]
    try:
        return _cipher(key).decrypt(nonce, body, FORMAT_V1 + aad)
    except InvalidTag as fault:
        raise CryptoError("does not open") from fault


def _cipher(key: bytes) -> AESGCM:
    if len(key) != KEY_BYTES:  # the library would take 16 bytes and quietly be AES-128
        raise CryptoError("the key has a wrong length")
    return AESGCM(key)


@dataclass(frozen=True, slots=True, repr=False)
class Keyring:
    current_id: str  # the key that encrypts; all decrypt
    keys: Mapping[str, bytes]

    @classmethod
    def parse(cls, text: str, key_of: Callable[[str, str], bytes] | None = None) -> Keyring:
        """Read `id:base64,id:base64`; the first is current. Raises: ValueError, without the key itself.

        `key_of` makes the key of an id and what follows it, where that is not the key in base64.
        """
        keys: dict[str, bytes] = {}
        for part in filter(None, (piece.strip() for piece in text.split(","))):
            key_id, value = _split_entry(part)
            if key_id in keys:
                raise ValueError(f"key id {key_id} appears twice")
            key = (key_of or key_from_base64)(key_id, value)
            # Under a second name the old key would look rotated out and still open everything.
            twin = next((known_id for known_id, known in keys.items() if hmac.compare_digest(known, key)), None)
            if twin is not None:
                raise ValueError(f"{twin} and {key_id} are the same key")
            keys[key_id] = key
        if not keys:
            raise ValueError("at least one id:base64 entry is needed")
        return cls(current_id=next(iter(keys)), keys=MappingProxyType(keys))

    @classmethod
    def without_keys(cls) -> Keyring:
        # For processes that never use credentials.
        return cls(current_id="", keys=MappingProxyType({}))

    def sealing_with(self, key_id: str) -> Keyring:
        """The same keys; `key_id`, one of them, encrypts."""
        return Keyring(current_id=key_id, keys=self.keys)

    def wrap(self, data_key: bytes, aad: bytes) -> bytes:
        """Encrypt a data key under `current_id`, which the caller stores beside it. Raises: UnknownKey."""
        if not self.keys:
            raise UnknownKey("no key-encryption key is configured")
        return seal(self.keys[self.current_id], data_key, b"wrap|" + self.current_id.encode() + b"|" + aad)

    def unwrap(self, key_id: str, wrapped: bytes, aad: bytes) -> bytes:
        """Decrypt a data key. Raises: UnknownKey; CryptoError when it does not open."""
        key = self.keys.get(key_id)
        if key is None:
            raise UnknownKey(f"key-encryption key {key_id} is not configured")
        return open_sealed(key, wrapped, b"wrap|" + key_id.encode() + b"|" + aad)

    def __repr__(self) -> str:
        return f"Keyring(current_id={self.current_id!r}, ids={sorted(self.keys)!r})"


def _split_entry(part: str) -> tuple[str, str]:
    key_id, separator, value = part.partition(":")
    if not separator or not key_id.isascii() or not key_id.replace("-", "").isalnum():
        raise ValueError("each entry must be id:base64, the id made of letters, digits and dashes")
    if len(key_id) > KEY_ID_MAX_CHARACTERS:
        raise ValueError(f"a key id may have at most {KEY_ID_MAX_CHARACTERS} characters")
    return key_id, value


def key_from_base64(key_id: str, encoded: str) -> bytes:
    """Raises: ValueError, without the key itself."""
    try:
        key = base64.b64decode(encoded, validate=True)
    except ValueError:
        raise ValueError(f"key {key_id} is not base64") from None
    if len(key) != KEY_BYTES or len(set(key)) < 8:
        raise ValueError(f"key {key_id} must be {KEY_BYTES} random bytes")
    return key
