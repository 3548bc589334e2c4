"""Pure: PKCE, with S256 only. Spec: RFC 7636 · D120"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re

METHOD = "S256"

_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")  # base64url of a SHA-256
# RFC 7636 4.1
_VERIFIER = re.compile(r"[A-Za-z0-9\-._~]{43,128}")


class ChallengeError(ValueError):
    """The challenge of an authorization request is missing or cannot be used."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def is_challenge(text: str) -> bool:
    return _CHALLENGE.fullmatch(text) is not None


def required_challenge(challenge: str, method: str) -> str:
    """The challenge that an authorization request must have. Raises: ChallengeError."""
    if not challenge:
        raise ChallengeError("code_challenge is missing: PKCE is required.")
    if method != METHOD:
        raise ChallengeError("code_challenge_method must be S256.")
    if not is_challenge(challenge):
        raise ChallengeError("code_challenge is not a base64url SHA-256.")
    return challenge


def challenge_of(verifier: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def proves(verifier: str, challenge: str) -> bool:
    """Returns whether `verifier` is well-formed and matches `challenge`, compared in constant time."""
    if not _VERIFIER.fullmatch(verifier) or not is_challenge(challenge):
        return False
    return hmac.compare_digest(challenge_of(verifier), challenge)
