"""Resolves a bearer string to an identity. The proxy caches the result by epoch."""

from __future__ import annotations

import re
import uuid
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from gateway.lib import clock, management_token_format, secrets
from gateway.lib.json_statement import JsonStatement
from oauth_ext import agent_key_format, resources, scopes
from oauth_ext.bearer_rows import (
    BY_ACCESS_TOKEN,
    BY_AGENT_KEY,
    ClientRow,
    KeyRow,
    PersonRow,
    TokenRow,
    read_key,
    read_token,
)
from oauth_ext.jwt import keys
from oauth_ext.jwt.key_material import KeySet
from oauth_ext.jwt.verify import Claims, ExpiredToken, InvalidToken, UnknownKey, verify
from oauth_ext.models import AgentKey, Client
from oauth_ext.models.client import service_subject

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
    """The subject of a bearer. Its rights are those of the rows that its statement read."""

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
    key_pk: uuid.UUID | None = None  # of the agent key
    # None for an identity that no bearer gave.
    client: ClientRow | None = field(default=None, compare=False)
    person: PersonRow | None = field(default=None, compare=False)  # None for a service client too


def looks_like_agent_key(bearer: str) -> bool:
    # Malformed agent keys count too.
    return bearer.startswith(agent_key_format.MARK)


@dataclass(frozen=True, slots=True)
class Presented:
    """A bearer that is genuine as far as its own text tells. One row says the rest."""

    claims: Claims | None  # None for an agent key
    secret_sha256: bytes = field(repr=False)  # empty for an access token
    statement: JsonStatement  # reads the row by `key`
    key: str = field(repr=False)


def read_bearer(bearer: str) -> Presented:
    """Raises: InvalidBearer; SigningKeysUnavailable for a faulty deployment; django.db.Error."""
    try:
        return read_bearer_with(bearer, None if looks_like_agent_key(bearer) else keys.load_key_set())
    except UnknownKey:  # another process may have just rotated
        pass
    try:
        return read_bearer_with(bearer, keys.load_key_set(max_age_s=keys.RELOAD_FOR_UNKNOWN_KEY_AFTER_S))
    except UnknownKey as fault:
        raise InvalidBearer(fault.reason) from None


def read_bearer_with(bearer: str, key_set: KeySet | None) -> Presented:
    """As `read_bearer`, without I/O. Raises: InvalidBearer; UnknownKey, also for a token while `key_set` is None."""
    if len(bearer) > MAX_BEARER_CHARACTERS or not _B64TOKEN.fullmatch(bearer):
        raise InvalidBearer("The access token is malformed.")
    if management_token_format.looks_like_one(bearer):
        raise InvalidBearer("A management token is for /api only. Use an agent key or an OAuth access token here.")
    if looks_like_agent_key(bearer):
        parts = agent_key_format.parse(bearer)
        if parts is None:
            raise InvalidBearer(_BAD_AGENT_KEY)
        return Presented(None, secrets.sha256(parts.secret), BY_AGENT_KEY, parts.prefix)
    if key_set is None:
        raise UnknownKey("no key is loaded")
    try:
        claims = verify(bearer, key_set, now=clock.now())
    except UnknownKey:
        raise
    except ExpiredToken as fault:
        raise ExpiredBearer(fault.reason) from None
    except InvalidToken as fault:
        raise InvalidBearer(fault.reason) from None
    return Presented(claims, b"", BY_ACCESS_TOKEN, secrets.sha256(bearer).hex())


def identity_of(presented: Presented, row: bytes | None) -> BearerIdentity:
    """`row`: the statement's answer. Raises: InvalidBearer. Spec: §5 (2) · D72-D74"""
    if presented.claims is None:
        return _of_agent_key(presented, None if row is None else read_key(row))
    return _of_token(presented.claims, None if row is None else read_token(row))


def may_be_access_token(bearer: str) -> bool:
    """Checks the spelling only."""
    return len(bearer) <= MAX_BEARER_CHARACTERS and bearer.count(".") == 2 and not looks_like_agent_key(bearer)


def record_uses(client_pks: Collection[uuid.UUID], key_pks: Collection[uuid.UUID], now: datetime) -> None:
    """Sets `last_used_at` of clients and of agent keys, at most once in five minutes each."""
    with transaction.atomic():
        for rows in (
            Client.objects.filter(_is_due(now), pk__in=client_pks),
            AgentKey.objects.filter(_is_due(now), pk__in=key_pks),
        ):
            # A locked row is being changed or recorded by another process: its use waits for the next round.
            free = rows.select_for_update(skip_locked=True, no_key=True).order_by("pk").values_list("pk", flat=True)
            if due := list(free):
                rows.model._default_manager.filter(pk__in=due).update(last_used_at=now)


def record_use(client_pk: uuid.UUID, now: datetime) -> None:
    """As `record_uses`, for one client whose row the caller may hold."""
    Client.objects.filter(_is_due(now), pk=client_pk).update(last_used_at=now)


def _is_due(now: datetime) -> Q:
    return Q(last_used_at=None) | Q(last_used_at__lte=now - RECORD_USE_EVERY)


def _of_agent_key(presented: Presented, row: KeyRow | None) -> BearerIdentity:
    # Compared also without a row: the time of a refusal must not reveal which prefixes exist.
    stored = _NO_SECRET if row is None else bytes.fromhex(row.secret_sha256)
    genuine = secrets.equal(stored, presented.secret_sha256)
    if row is None or not genuine:
        raise InvalidBearer(_BAD_AGENT_KEY)
    client, now = row.client, clock.now()
    ends_at = None if row.ends_at is None else clock.as_utc(row.ends_at)
    if ends_at is not None and ends_at <= now:
        raise InvalidBearer(_BAD_AGENT_KEY)
    expires_at = _expiry(client)
    if client.organization_id is None or expires_at is None or expires_at <= now:
        raise InvalidBearer("The service client of this agent key has expired.")
    return BearerIdentity(
        kind="agent_key",
        subject=service_subject(client.organization_id, client.client_id),
        org_id=client.organization_id,
        user_id=None,
        client_pk=client.pk,
        client_id=client.client_id,
        client_name=client.name,
        scopes=frozenset({scopes.ALL}),
        audiences=(resources.unified(settings.BASE_URL),),
        # The cached identity of a rotated key ends with the overlap.
        expires_at=expires_at if ends_at is None else min(expires_at, ends_at),
        key_pk=row.pk,
        client=client,
    )


def _of_token(claims: Claims, row: TokenRow | None) -> BearerIdentity:
    now = clock.now()
    # Deleting a token, a client, a person or an organization deletes the row.
    if row is None or clock.as_utc(row.expires_at) <= now:
        raise RevokedBearer(claims.expires_at)
    client, person = row.client, row.person
    if client is None:
        raise InvalidBearer(_REVOKED)
    client_ends_at = _expiry(client)
    if client_ends_at is not None and client_ends_at <= now:
        raise InvalidBearer("The client of this access token has expired.")
    if person is not None and not person.is_active:
        raise InvalidBearer(_REVOKED)
    subject = service_subject(client.organization_id, client.client_id) if person is None else str(person.id)
    if (claims.subject, claims.org_id, claims.client_id) != (subject, row.organization_id, client.client_id):
        raise InvalidBearer("The access token does not match its record.")
    if person is not None and client.organization_id is not None:
        _require_acting(client, claims)
    return BearerIdentity(
        kind="jwt",
        subject=subject,
        org_id=claims.org_id,
        user_id=None if person is None else person.id,
        client_pk=client.pk,
        client_id=client.client_id,
        client_name=client.name,
        scopes=claims.scopes,
        audiences=claims.audiences,
        # The cached identity ends with the token or the client, if that ends first.
        expires_at=min(claims.expires_at, client_ends_at or claims.expires_at),
        client=client,
        person=person,
    )


def _require_acting(client: ClientRow, claims: Claims) -> None:
    """Of a service client with a token of a person. Raises: InvalidBearer. docs/decisions/0109"""
    if not client.acts_for_people or client.organization_id != claims.org_id:
        raise InvalidBearer("The service client of this access token may not act for people.")


def _expiry(client: ClientRow) -> datetime | None:
    return None if client.expires_at is None else clock.as_utc(client.expires_at)
