"""The short codes that people copy from a device to the page: made, read leniently, and stored as keyed hashes.

Spec: §2 Device authorization · RFC 8628 6.1 · D126
"""

from __future__ import annotations

import secrets

from django.utils.crypto import salted_hmac

ALPHABET = "BCDFGHJKLMNPQRSTVWXZ"  # no vowels, so no words; nothing that looks like a digit
CHARACTERS = 8
_GROUP = 4
_SALT = "oauth_ext.user_codes"
# What people put between the groups, and what their keyboards and programs make of it.
_BETWEEN = dict.fromkeys(map(ord, " \t\u00a0\u2009\u202f-_.\u00ad\u2010\u2011\u2012\u2013\u2014\u2212"))


def new_user_code() -> str:
    """Eight random letters, 34 bits: enough for minutes under a limit of ten wrong ones."""
    return "".join(secrets.choice(ALPHABET) for _ in range(CHARACTERS))


def shown(code: str) -> str:
    """The code in two groups, as people read it."""
    return f"{code[:_GROUP]}-{code[_GROUP:]}"


def read(typed: str) -> str | None:
    """The code that somebody typed, whatever its case, dashes and spaces; None when it cannot be one."""
    if len(typed) > 100:
        return None
    code = typed.translate(_BETWEEN).upper()
    return code if len(code) == CHARACTERS and set(code) <= set(ALPHABET) else None


def stored(code: str) -> bytes:
    """The hash under which a code is kept. Keyed, because all codes can be tried against a plain one within minutes."""
    return bytes(salted_hmac(_SALT, code, algorithm="sha256").digest())
