from __future__ import annotations

from django.conf import settings

from gateway.lib.crypto import Keyring


def keyring() -> Keyring:
    """The keys of CREDENTIAL_KEYS, to open with. gateway.keys.current.sealing_keys says which one seals."""
    configured: Keyring = settings.CREDENTIAL_KEYRING
    return configured
