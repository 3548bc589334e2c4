"""Pure: authorization codes and access tokens of the demonstration identity provider, in memory and bounded."""

import base64
import hashlib
import hmac
import re
import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

# RFC 6749 §4.1.2 recommends at most ten minutes.
CODE_LIFETIME_S = 60
TOKEN_LIFETIME_S = 3600
# Entries in memory; a full table drops its oldest.
MAX_CODES = 1000
MAX_TOKENS = 10_000

# RFC 7636 §4.2: a SHA-256 digest in base64url without padding.
CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
# RFC 7636 §4.1.
VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")


class InvalidGrantError(Exception):
    """The code or token cannot be exchanged. The message may be shown to the client."""


@dataclass(frozen=True, slots=True)
class Person:
    """The signed-in person: a lower-cased e-mail address and a display name."""

    email: str
    name: str


@dataclass(frozen=True, slots=True)
class Grant:
    """The state of one authorization code."""

    client_id: str
    redirect_uri: str
    challenge: str
    nonce: str | None
    scope: str
    person: Person
    signed_in_at: int
    # None until the code is used, then the digest of its token; empty if the exchange was refused.
    used_for: str | None = None


class GrantStore:
    """Codes and tokens by SHA-256 digest. A full table drops its oldest entry."""

    def __init__(self, clock: Callable[[], float]) -> None:
        # Seconds since the epoch.
        self._clock = clock
        # Keyed by digest: a memory dump holds no usable token, and look-up time reveals none.
        self._codes: OrderedDict[str, tuple[float, Grant]] = OrderedDict()
        self._tokens: OrderedDict[str, tuple[float, Person]] = OrderedDict()

    def issue_code(self, grant: Grant) -> str:
        """A new code, valid for one exchange within CODE_LIFETIME_S."""
        code = secrets.token_urlsafe(32)
        _bound(self._codes, MAX_CODES)
        self._codes[_digest(code)] = (self._clock() + CODE_LIFETIME_S, grant)
        return code

    def redeem_code(self, code: str, *, client_id: str, redirect_uri: str, verifier: str) -> tuple[Grant, str]:
        """The grant and a new access token; the code is used up in any case. Raises: InvalidGrantError."""
        digest = _digest(code)
        expires_at, grant = self._codes.get(digest, (0.0, None))
        if grant is None:
            raise InvalidGrantError("the code is unknown")
        # RFC 6749 §4.1.2: a second use means that the code was stolen, so it revokes the first one's token.
        if grant.used_for is not None:
            self._tokens.pop(grant.used_for, None)
            raise InvalidGrantError("the code was used before")
        self._codes[digest] = (expires_at, replace(grant, used_for=""))
        if self._clock() >= expires_at:
            raise InvalidGrantError("the code has expired")
        if grant.client_id != client_id:
            raise InvalidGrantError("the code belongs to another client")
        if grant.redirect_uri != redirect_uri:
            raise InvalidGrantError("redirect_uri is not the one of the authorization request")
        if not matches_challenge(verifier, grant.challenge):
            raise InvalidGrantError("code_verifier does not match code_challenge")
        token = self.issue_token(grant.person)
        self._codes[digest] = (expires_at, replace(grant, used_for=_digest(token)))
        return grant, token

    def person_of(self, token: str) -> Person | None:
        """The person of an access token; None if it is unknown, revoked or expired."""
        expires_at, person = self._tokens.get(_digest(token), (0.0, None))
        return person if self._clock() < expires_at else None

    def issue_token(self, person: Person) -> str:
        token = secrets.token_urlsafe(32)
        _bound(self._tokens, MAX_TOKENS)
        self._tokens[_digest(token)] = (self._clock() + TOKEN_LIFETIME_S, person)
        return token


def matches_challenge(verifier: str, challenge: str) -> bool:
    """Whether `verifier` is well formed and hashes to the S256 `challenge` (RFC 7636 §4.6)."""
    if not VERIFIER.fullmatch(verifier):
        return False
    hashed = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode("ascii")).digest()).rstrip(b"=")
    return hmac.compare_digest(hashed, challenge.encode("ascii"))


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _bound(table: OrderedDict[str, Any], limit: int) -> None:
    while len(table) >= limit:
        table.popitem(last=False)
