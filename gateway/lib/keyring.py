from __future__ import annotations

from django.conf import settings

from gateway.lib.crypto import Keyring


def keyring() -> Keyring:
    """The keys of CREDENTIAL_KEYS: the first encrypts, all decrypt."""
    configured: Keyring = settings.CREDENTIAL_KEYRING
    return configured
