"""Pure: which calls are the same call, and within whose reach a result may be used again. Spec: §4.14 · D103"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

import msgspec

from credentials.resolve import CredentialRef
from credentials.scopes import CredentialScope
from orgs.principal import Principal

_encode = msgspec.json.Encoder(order="sorted").encode


class Place(Hashable, Protocol):
    """Where calls go, and for which organization."""

    @property
    def org_id(self) -> UUID: ...


@dataclass(frozen=True, slots=True)
class CacheKey:
    """Everything a result depends on. Two calls with equal keys would send the vendor the same bytes.

    `destination` is the vendor's address and the headers, as the session pool tells them apart: a replaced credential,
    or a vendor that moved, is another key even if nobody counted its revision up.
    """

    scope: str
    vendor: str
    tool: str
    arguments_sha256: bytes
    credential_id: UUID
    revision: int
    destination: Place

    @property
    def owner(self) -> UUID:
        """The organization whose result it is, whoever in it shares it."""
        return self.destination.org_id


def scope_of(principal: Principal, credential: CredentialRef) -> str:
    """Who shares results of calls with this credential: `team:<id>`, `org:<id>` or `user:<subject>`.

    Raises: ValueError for a named key without a team, with which nobody can call.
    """
    match credential.scope:
        case CredentialScope.ORGANIZATION:
            return f"org:{principal.org_id}"
        case CredentialScope.SERVICE_CLIENT:
            return f"user:{principal.subject}"
        case CredentialScope.TEAM | CredentialScope.NAMED_KEY if credential.team_id is not None:
            return f"team:{credential.team_id}"
    raise ValueError(f"nobody shares results of {credential.scope!r}")


def epoch_name(scope: str, vendor: str) -> str:
    """The epoch that a write in `scope` at `vendor` renews."""
    return f"cache:{scope}:{vendor}"


def cache_key(
    scope: str, credential: CredentialRef, tool: str, arguments: Mapping[str, Any], destination: Place
) -> CacheKey:
    """The key of one call; `tool` is the vendor's own spelling. The order of the arguments' members does not count."""
    digest = hashlib.sha256(_encode(arguments)).digest()
    return CacheKey(scope, credential.vendor, tool, digest, credential.id, credential.revision, destination)
