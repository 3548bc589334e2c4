"""Pure: proof that the one who redeems a code is the one who asked for it. Only S256. Spec: RFC 7636 · D120"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re

METHOD = "S256"

_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")  # base64url of a SHA-256
_VERIFIER = re.compile(r"[A-Za-z0-9\-._~]{43,128}")


def is_challenge(text: str) -> bool:
    """Whether `text` can be the S256 challenge of some verifier."""
    return _CHALLENGE.fullmatch(text) is not None


def challenge_of(verifier: str) -> str:
    """The S256 challenge of a verifier."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def proves(verifier: str, challenge: str) -> bool:
    """Whether `verifier` is well-formed and the one behind `challenge`; compared in constant time."""
    if not _VERIFIER.fullmatch(verifier) or not is_challenge(challenge):
        return False
    return hmac.compare_digest(challenge_of(verifier), challenge)
