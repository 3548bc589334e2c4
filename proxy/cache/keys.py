"""Pure: keys and scopes of cached results. Spec: §4.14 · D103"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

import msgspec

from credentials.credential_scope import CredentialScope
from credentials.resolve import CredentialRef
from gateway.coordination.hash_tags import tagged
from orgs.principal import Principal

_encode = msgspec.json.Encoder(order="sorted").encode


class DestinationKey(Hashable, Protocol):
    """The address and credentials that results depend on, and their organization."""

    @property
    def org_id(self) -> UUID: ...


@dataclass(frozen=True, slots=True)
class CacheKey:
    """Everything a result depends on: calls with equal keys send the vendor the same bytes."""

    scope: str
    vendor: str
    tool: str
    arguments_sha256: bytes
    credential_id: UUID
    revision: int  # of the credential
    destination: DestinationKey  # address and headers: differs for a replaced credential or a moved vendor

    @property
    def owner(self) -> UUID:
        return self.destination.org_id


def scope_of(principal: Principal, credential: CredentialRef) -> str:
    """Results are shared in `team:<id>`, `org:<id>` or `user:<subject>`. Raises: ValueError for a key of no team."""
    match credential.scope:
        case CredentialScope.ORGANIZATION:
            return f"org:{principal.org_id}"
        case CredentialScope.SERVICE_CLIENT | CredentialScope.PERSON:
            return f"user:{principal.subject}"
        case CredentialScope.TEAM | CredentialScope.NAMED_KEY if credential.team_id is not None:
            return f"team:{credential.team_id}"
    raise ValueError(f"nobody shares results of {credential.scope!r}")


def epoch_name(org_id: UUID | str, scope: str, vendor: str) -> str:
    return tagged(str(org_id), f"cache:{scope}:{vendor}")


def cache_key(
    scope: str, credential: CredentialRef, tool: str, arguments: Mapping[str, Any], destination: DestinationKey
) -> CacheKey:
    """`tool` is the vendor's own spelling."""
    # The encoder sorts members: their order does not matter.
    digest = hashlib.sha256(_encode(arguments)).digest()
    return CacheKey(scope, credential.vendor, tool, digest, credential.id, credential.revision, destination)
