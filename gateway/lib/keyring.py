"""The key-encryption keys of this deployment."""

from __future__ import annotations

from django.conf import settings

from gateway.lib.crypto import Keyring


def keyring() -> Keyring:
    """The keys of CREDENTIAL_KEYS: the first seals, all open."""
    configured: Keyring = settings.CREDENTIAL_KEYRING
    return configured
