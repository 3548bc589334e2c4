"""Digests that a stolen table does not let anybody guess: keyed with SECRET_KEY, and found after it was replaced."""

from __future__ import annotations

from collections.abc import Sequence

from django.conf import settings
from django.utils.crypto import salted_hmac


def keyed_digest(salt: str, value: str | bytes) -> bytes:
    """To store."""
    return _under(settings.SECRET_KEY, salt, value)


def known_digests(salt: str, value: str | bytes) -> Sequence[bytes]:
    """To look for: under SECRET_KEY and each value of SECRET_KEY_FALLBACKS."""
    return [_under(secret, salt, value) for secret in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)]


def _under(secret: str, salt: str, value: str | bytes) -> bytes:
    return bytes(salted_hmac(salt, value, secret=secret, algorithm="sha256").digest())
