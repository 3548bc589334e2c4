"""A session of a caller of the earlier revisions: its client's words in `initialize`, sealed in the session's id.

No process keeps a session, so no call looks one up. Its end and its log level, which come later, are in the exchange
of all processes. An epoch, read with those of the caller, says when to look there. docs/decisions/0110
"""

from __future__ import annotations

import base64
import binascii
import hmac
import os
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import msgspec
from django.conf import settings

from gateway.coordination.hash_tags import session_epoch, tag_of_subject, tagged
from gateway.lib import clock
from gateway.lib.crypto import CryptoError, open_sealed, seal
from orgs.principal import Principal

LIFETIME_S = 7 * 86_400  # the epoch that ends a session is kept as long
MAX_ID_CHARACTERS = 2_048
_PURPOSE = b"client-session|"


class SessionEnded(Exception):
    """The session's id is cut, of another caller or endpoint, too old, or its client has ended it."""


class ClientSession(msgspec.Struct, frozen=True):
    """`id`: 16 random bytes. `epoch`: the name of the epoch that changes with the session's state."""

    id: bytes
    capabilities: Mapping[str, Any]
    epoch: str


class SessionState(msgspec.Struct, frozen=True, array_like=True):
    """The parts that change. `log_level`: the least severe level of log messages; None: the client asked for none."""

    is_ended: bool = False
    log_level: str | None = None


class _Sealed(msgspec.Struct, frozen=True, array_like=True):
    expires_at_s: float
    id: bytes
    binding: tuple[str, ...]
    capabilities: dict[str, dict[str, Any]]


_decoder = msgspec.msgpack.Decoder(_Sealed)


def issued(principal: Principal, endpoint: str, capabilities: Mapping[str, Mapping[str, Any]]) -> str:
    """The id of a new session. `endpoint`: the path. `capabilities`: as `questions.declared`."""
    expires_at_s = clock.now().timestamp() + LIFETIME_S
    known = {name: dict(members) for name, members in capabilities.items()}
    found = _Sealed(expires_at_s, os.urandom(16), _binding(principal, endpoint), known)
    raw = seal(_key(principal.org_id), msgspec.msgpack.encode(found), _PURPOSE + principal.org_id.bytes)
    return base64.urlsafe_b64encode(raw).decode("ascii").rstrip("=")


def opened(principal: Principal, endpoint: str, session_id: str) -> ClientSession:
    """Raises: SessionEnded."""
    if len(session_id) > MAX_ID_CHARACTERS:
        raise SessionEnded
    try:
        padded = session_id.encode("ascii") + b"=" * (-len(session_id) % 4)
        raw = base64.b64decode(padded, altchars=b"-_", validate=True)
        found = _decoder.decode(open_sealed(_key(principal.org_id), raw, _PURPOSE + principal.org_id.bytes))
    except (ValueError, binascii.Error, CryptoError, msgspec.MsgspecError) as fault:
        raise SessionEnded from fault
    if found.binding != _binding(principal, endpoint) or clock.now().timestamp() >= found.expires_at_s:
        raise SessionEnded
    # With its end, so that a store without expiry can forget it.
    name = tagged(tag_of_subject(principal.subject), session_epoch(found.id.hex(), int(found.expires_at_s)))
    return ClientSession(found.id, found.capabilities, name)


def _binding(principal: Principal, endpoint: str) -> tuple[str, ...]:
    return (principal.kind.value, principal.subject, principal.client_id, endpoint)


def _key(org_id: UUID) -> bytes:
    return hmac.digest(settings.SECRET_KEY.encode(), _PURPOSE + org_id.bytes, "sha256")
