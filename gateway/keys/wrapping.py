"""Where the bytes of a key of CREDENTIAL_KEYS come from: an entry has them, or has them wrapped by a key service.

No Django: settings unwrap the keys at the start of every process.   docs/decisions/0086
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from gateway.lib.crypto import KEY_BYTES, Keyring, key_from_base64

VAULT, AWS_KMS = "vault", "aws-kms"
# The variable that entries of that kind need.
NEEDS = {VAULT: "VAULT_TRANSIT_KEY", AWS_KMS: "AWS_KMS_KEY_ID"}


class WrappingError(Exception):
    """The key service did not wrap or unwrap. The text ends a sentence and holds no secret."""


class KeyWrapping(Protocol):
    """A key service. `wrapped` begins with the service's name and a colon; it is no secret."""

    def wrap(self, key_id: str, key: bytes) -> str:
        """Raises: WrappingError."""

    def unwrap(self, key_id: str, wrapped: str) -> bytes:
        """Raises: WrappingError."""


def wrapped_by(value: str) -> str:
    """The name of the key service; empty for a key as it is."""
    return value.partition(":")[0] if ":" in value else ""


def open_keyring(text: str, services: Mapping[str, KeyWrapping]) -> Keyring:
    """The keys of CREDENTIAL_KEYS, unwrapped. Raises: ValueError, WrappingError; neither has a key in its text."""

    def key_of(key_id: str, value: str) -> bytes:
        name = wrapped_by(value)
        if not name:
            return key_from_base64(key_id, value)
        if name not in NEEDS:
            raise ValueError(f"key {key_id} is wrapped by something other than {' or '.join(NEEDS)}")
        if name not in services:
            raise ValueError(f"key {key_id} is wrapped by {name}, and {NEEDS[name]} is not set")
        key = services[name].unwrap(key_id, value)
        if len(key) != KEY_BYTES:
            raise WrappingError(f"{name} opens key {key_id} as something that is no key of {KEY_BYTES} bytes")
        return key

    return Keyring.parse(text, key_of)


def services_of_entries(text: str) -> Mapping[str, str]:
    """By key id, the name of the service that wraps it; empty for a key as it is."""
    entries = (entry.strip().partition(":") for entry in text.split(",") if entry.strip())
    return {key_id: wrapped_by(value) for key_id, _, value in entries}
