"""Resolves a bearer string to an identity. The proxy calls it off its event loop and caches the result by epoch."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from django.conf import settings
from django.db.models import Q

from gateway.lib import clock, secrets
from oauth_ext import agent_key_format, resources, scopes
from oauth_ext.jwt import keys
from oauth_ext.jwt.verify import Claims, ExpiredToken, InvalidToken, UnknownKey, verify
from oauth_ext.models import AccessToken, AgentKey, Client

MAX_BEARER_CHARACTERS = 8 * 1024  # longer ones are refused before any parsing
RECORD_USE_EVERY = timedelta(minutes=5)  # bounds the writes: no row is written per call

_B64TOKEN = re.compile(r"[A-Za-z0-9\-._~+/]+=*")  # RFC 6750 2.1
_NO_SECRET = bytes(32)  # compared against when no key has the prefix
_BAD_AGENT_KEY = "The agent key is not valid."
_REVOKED = "The access token was revoked."


class InvalidBearer(Exception):
    """The bearer identifies no subject; `reason` is a sentence for the client that never repeats the bearer."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class ExpiredBearer(InvalidBearer):
    """An expired access token of ours: normal for every client, and found without a query."""


class RevokedBearer(InvalidBearer):
    """An access token of ours whose row is deleted. The refusal is final and may be cached until `expires_at`."""

    # A row is committed before its token is handed out, so a missing row never appears later.
    def __init__(self, expires_at: datetime) -> None:
        super().__init__(_REVOKED)
        self.expires_at = expires_at


@dataclass(frozen=True, slots=True)
class BearerIdentity:
    """The subject of a bearer, without its permissions: those are looked up at every call."""

    kind: Literal["jwt", "agent_key"]
    # A person's id, or `svc:<org-id>:<client-id>`.
    subject: str
    org_id: uuid.UUID
    user_id: uuid.UUID | None  # None for a service client
    client_pk: uuid.UUID
    client_id: str
    client_name: str
    scopes: frozenset[str]
    audiences: tuple[str, ...]  # canonical resource addresses
    expires_at: datetime


def looks_like_agent_key(bearer: str) -> bool:
    # Malformed agent keys count too.
    return bearer.startswith(agent_key_format.MARK)


def load_identity(bearer: str) -> BearerIdentity:
    """Raises: InvalidBearer; SigningKeysUnavailable for a faulty deployment. Spec: §5 (2) · D72-D74"""
    if len(bearer) > MAX_BEARER_CHARACTERS or not _B64TOKEN.fullmatch(bearer):
        raise InvalidBearer("The access token is malformed.")
    if looks_like_agent_key(bearer):
        return _from_agent_key(bearer)
    return _from_jwt(bearer)


def may_be_access_token(bearer: str) -> bool:
    """Checks the spelling only; `is_signed_by_us` checks the signature."""
    return len(bearer) <= MAX_BEARER_CHARACTERS and bearer.count(".") == 2 and not looks_like_agent_key(bearer)


def is_signed_by_us(bearer: str) -> bool:
    """Reads no row: the token may be expired or revoked. Raises: SigningKeysUnavailable."""
    if not may_be_access_token(bearer) or not _B64TOKEN.fullmatch(bearer):
        return False
    try:
        # The key set is read every few seconds, however many bearers come.
        verify(bearer, keys.load_key_set(), now=clock.now())
    except ExpiredToken:
        return True
    except InvalidToken:
        return False
    return True


def record_use(client_pk: uuid.UUID, agent_key: bool, now: datetime) -> None:
    """Sets `last_used_at` of the client, and of its agent key, at most once in five minutes."""
    is_due = Q(last_used_at=None) | Q(last_used_at__lte=now - RECORD_USE_EVERY)
    Client.objects.filter(is_due, pk=client_pk).update(last_used_at=now)
    if agent_key:
        AgentKey.objects.filter(is_due, client_id=client_pk).update(last_used_at=now)


def _from_agent_key(bearer: str) -> BearerIdentity:
    parts = agent_key_format.parse(bearer)
    if parts is None:
        raise InvalidBearer(_BAD_AGENT_KEY)
    row = AgentKey.objects.select_related("client").filter(prefix=parts.prefix).first()
    # Compared also without a row: the time of a refusal must not reveal which prefixes exist.
    genuine = secrets.equal(_NO_SECRET if row is None else bytes(row.secret_sha256), secrets.sha256(parts.secret))
    if row is None or not genuine:
        raise InvalidBearer(_BAD_AGENT_KEY)
    client = row.client
    if client.organization_id is None or client.expires_at is None or client.is_expired():
        raise InvalidBearer("The service client of this agent key has expired.")
    return BearerIdentity(
        kind="agent_key",
        subject=client.subject,
        org_id=client.organization_id,
        user_id=None,
        client_pk=client.pk,
        client_id=client.client_id,
        client_name=client.name,
        scopes=frozenset({scopes.ALL}),
        audiences=(resources.unified(settings.BASE_URL),),
        expires_at=client.expires_at,
    )


def _from_jwt(bearer: str) -> BearerIdentity:
    claims = _verified(bearer)
    row = (
        AccessToken.objects.select_related("application", "user")
        .filter(token_checksum=secrets.sha256(bearer).hex(), expires__gt=clock.now())
        .first()
    )
    # Deleting a token, a client, a person or an organization deletes the row.
    if row is None:
        raise RevokedBearer(claims.expires_at)
    if row.application is None:
        raise InvalidBearer(_REVOKED)
    client: Client = row.application
    if client.is_expired():
        raise InvalidBearer("The client of this access token has expired.")
    if row.user is not None and not row.user.is_active:
        raise InvalidBearer(_REVOKED)
    subject = client.subject if row.user is None else str(row.user.pk)
    if (claims.subject, claims.org_id, claims.client_id) != (subject, row.organization_id, client.client_id):
        raise InvalidBearer("The access token does not match its record.")
    return BearerIdentity(
        kind="jwt",
        subject=subject,
        org_id=claims.org_id,
        user_id=row.user_id,
        client_pk=client.pk,
        client_id=client.client_id,
        client_name=client.name,
        scopes=claims.scopes,
        audiences=claims.audiences,
        # The cached identity ends with the token or the client, if that ends first.
        expires_at=min(claims.expires_at, client.expires_at or claims.expires_at),
    )


def _verified(bearer: str) -> Claims:
    try:
        try:
            return verify(bearer, keys.load_key_set(), now=clock.now())
        except UnknownKey:  # another process may have just rotated
            fresher = keys.load_key_set(max_age_s=keys.RELOAD_FOR_UNKNOWN_KEY_AFTER_S)
            return verify(bearer, fresher, now=clock.now())
    except ExpiredToken as fault:
        raise ExpiredBearer(fault.reason) from None
    except InvalidToken as fault:
        raise InvalidBearer(fault.reason) from None
