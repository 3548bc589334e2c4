"""Pure: the codes and access tokens of the demonstration identity provider, in memory, short-lived and bounded."""

import base64
import hashlib
import hmac
import re
import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

CODE_LIFETIME_S = 60
TOKEN_LIFETIME_S = 3600
MAX_CODES = 1000
MAX_TOKENS = 10_000

# 32 bytes of SHA-256 in base64url without padding; RFC 7636 §4.2.
CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")


class InvalidGrantError(Exception):
    """The code cannot be exchanged; the message says why and may be shown to the client."""


@dataclass(frozen=True, slots=True)
class Person:
    """Who signed in: a lower-cased e-mail address and a display name."""

    email: str
    name: str


@dataclass(frozen=True, slots=True)
class Grant:
    """What one authorization code stands for.

    `used_for` is None until the code is spent, then the digest of its token, or empty when the exchange was refused.
    """

    client_id: str
    redirect_uri: str
    challenge: str
    nonce: str | None
    scope: str
    person: Person
    signed_in_at: int
    used_for: str | None = None


class GrantStore:
    """Codes and tokens by digest, so that neither a dump nor the time of a look-up tells one.

    `clock` returns seconds since the epoch. The oldest entry goes when a table is full.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._codes: OrderedDict[str, tuple[float, Grant]] = OrderedDict()
        self._tokens: OrderedDict[str, tuple[float, Person]] = OrderedDict()

    def issue_code(self, grant: Grant) -> str:
        """A new code for `grant`, good for one exchange within CODE_LIFETIME_S."""
        code = secrets.token_urlsafe(32)
        _bound(self._codes, MAX_CODES)
        self._codes[_digest(code)] = (self._clock() + CODE_LIFETIME_S, grant)
        return code

    def redeem_code(self, code: str, *, client_id: str, redirect_uri: str, verifier: str) -> tuple[Grant, str]:
        """The grant behind `code` and a new access token; the code is spent, whatever the outcome.

        A second use revokes the token of the first: one of the two parties stole the code (RFC 6749 §4.1.2).
        Raises: InvalidGrantError when the code is unknown, spent or too old, or belongs to another exchange.
        """
        digest = _digest(code)
        expires_at, grant = self._codes.get(digest, (0.0, None))
        if grant is None:
            raise InvalidGrantError("the code is unknown")
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
        """Who an access token stands for, or None when it is unknown, revoked or too old."""
        expires_at, person = self._tokens.get(_digest(token), (0.0, None))
        return person if self._clock() < expires_at else None

    def issue_token(self, person: Person) -> str:
        """A new access token for the person."""
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
