"""User codes of the device flow: random letters, read leniently, stored as keyed hashes.

Spec: §2 Device authorization · RFC 8628 6.1 · D126
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from gateway.lib.keyed_digests import keyed_digest, known_digests

ALPHABET = "BCDFGHJKLMNPQRSTVWXZ"  # no vowels, so no words; no letters that look like digits
CHARACTERS = 8  # 34 bits: enough for ten minutes and ten wrong codes
_GROUP = 4
_SALT = "oauth_ext.user_codes"
# Separators that people type between the groups, or that keyboards and programs put there.
_BETWEEN = dict.fromkeys(map(ord, " \t\u00a0\u2009\u202f-_.\u00ad\u2010\u2011\u2012\u2013\u2014\u2212"))


def new_user_code() -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(CHARACTERS))


def shown(code: str) -> str:
    """Formats a code as `XXXX-XXXX`."""
    return f"{code[:_GROUP]}-{code[_GROUP:]}"


def read(typed: str) -> str | None:
    """Ignores case, dashes and spaces; returns None when `typed` cannot be a code."""
    if len(typed) > 100:  # bounds the work on a pasted text
        return None
    code = typed.translate(_BETWEEN).upper()
    return code if len(code) == CHARACTERS and set(code) <= set(ALPHABET) else None


def stored(code: str) -> bytes:
    # Keyed: every code can be tried against a plain hash within minutes.
    return keyed_digest(_SALT, code)


def known(code: str) -> Sequence[bytes]:
    """All forms in which the code may have been stored."""
    return known_digests(_SALT, code)
