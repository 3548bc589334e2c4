"""A session of a caller of the earlier revisions: its client's words in `initialize`, sealed in the session's id.

No process keeps a session, so no call looks one up. Its end and its log level, which come later, are in the exchange
of all processes. An epoch, read with those of the caller, says when to look there. docs/decisions/0110
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Mapping
from typing import Any

import msgspec
from django.conf import settings

from gateway.coordination.hash_tags import session_epoch, tag_of_subject, tagged
from gateway.lib import clock
from orgs.principal import Principal
from proxy.caller_seal import CallerSeal, NotOpened

LIFETIME_S = 7 * 86_400  # the epoch that ends a session is kept as long
MAX_ID_CHARACTERS = 2_048


class SessionEnded(Exception):
    """The session's id is cut, of another caller or endpoint, too old, or its client has ended it."""


class ClientSession(msgspec.Struct, frozen=True):
    """`id`: 16 random bytes. `epoch`: the name of the epoch that changes with the session's state."""

    id: bytes
    capabilities: Mapping[str, Any]
    epoch: str
    expires_at_s: float  # Unix time


class ClientSessionState(msgspec.Struct, frozen=True, array_like=True):
    """The parts that change. `log_level`: the least severe level of log messages; None: the client asked for none."""

    is_ended: bool = False
    log_level: str | None = None


class _Sealed(msgspec.Struct, frozen=True, array_like=True):
    expires_at_s: float
    id: bytes
    binding: tuple[str, ...]
    capabilities: dict[str, dict[str, Any]]


_seal = CallerSeal(b"client-session|", _Sealed, max_characters=MAX_ID_CHARACTERS)


def issued(principal: Principal, endpoint: str, capabilities: Mapping[str, Mapping[str, Any]]) -> str:
    """The id of a new session. `endpoint`: the path. `capabilities`: as `questions.declared`."""
    expires_at_s = clock.now().timestamp() + LIFETIME_S
    known = {name: dict(members) for name, members in capabilities.items()}
    found = _Sealed(expires_at_s, os.urandom(16), _binding(principal, endpoint), known)
    return _seal.seal(principal.org_id, found).rstrip("=")


def opened(principal: Principal, endpoint: str, session_id: str) -> ClientSession:
    """Raises: SessionEnded."""
    try:
        found = _seal.open(principal.org_id, session_id)
    except NotOpened as fault:
        raise SessionEnded from fault
    if found.binding != _binding(principal, endpoint):
        raise SessionEnded
    # With its end, so that a store without expiry can forget it.
    name = tagged(tag_of_subject(principal.subject), session_epoch(found.id.hex(), int(found.expires_at_s)))
    return ClientSession(found.id, found.capabilities, name, found.expires_at_s)


def elicitation_id(session: ClientSession, vendor: str) -> str:
    """Of the page where this client's person connects the vendor: the same each time, and unknown to others."""
    secret = settings.SECRET_KEY.encode()
    return hmac.digest(secret, b"page-to-open|" + session.id + vendor.encode(), "sha256").hex()[:32]


def _binding(principal: Principal, endpoint: str) -> tuple[str, ...]:
    return (principal.kind.value, principal.subject, principal.client_id, endpoint)
