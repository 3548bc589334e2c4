"""Pure: where the calls of a vendor with one credential go."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True, eq=False)
class PoolKey:
    """Calls with equal organization, vendor, credential, headers and address share a session. Spec: D104"""

    org_id: uuid.UUID
    vendor: str
    credential_id: uuid.UUID
    digest: bytes  # of all of them; compared alone, because keys are looked up several times a call
    place: bytes = b""  # digest of all but the headers, which change with each token of a sign-in

    @classmethod
    def of(
        cls,
        org_id: uuid.UUID,
        vendor: str,
        credential_id: uuid.UUID,
        url: str,
        headers: Mapping[str, str],
        *,
        newest_protocol: bool = True,
    ) -> PoolKey:
        """A replaced credential has another digest, and so has another choice of protocol."""
        owner_parts = (org_id.hex, vendor, credential_id.hex, url)
        parts = "\0".join([*owner_parts, *(f"{name}\0{headers[name]}" for name in sorted(headers))])
        parts += "" if newest_protocol else "\0\0earlier"
        place = hashlib.sha256("\0".join(owner_parts).encode()).digest()
        return cls(org_id, vendor, credential_id, hashlib.sha256(parts.encode()).digest(), place)

    def apart(self, mark: bytes) -> PoolKey:
        """The key of sessions that no other mark shares."""
        return replace(self, digest=hashlib.sha256(self.digest + mark).digest())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PoolKey) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


@dataclass(frozen=True, slots=True)
class Destination:
    """The address of a session. `open` returns URL and headers, which hold the credential.

    Raises: VendorProblem, from `open` and `secrets`.
    """

    key: PoolKey
    open: Callable[[], tuple[str, Mapping[str, str]]]
    fixed_address: bool = False  # from the catalog; no organization can change it
    timeout_s: float = 15.0  # for one answer
    newest_protocol: bool = True  # False: the vendor is not asked for it
    secrets: Callable[[], Iterable[str]] = tuple  # to be masked in answers
    capabilities: Mapping[str, Any] | None = None  # of the one caller that its sessions are for
    shared_key: PoolKey | None = None  # of the lists that all callers share, if `key` is one caller's
    mark: bytes = b""  # of the one caller

    @property
    def list_key(self) -> PoolKey:
        return self.shared_key or self.key

    def for_caller(self, mark: bytes, capabilities: Mapping[str, Any]) -> Destination:
        """The same place, with sessions apart: the vendor is told what this caller can answer. `mark`: of the caller's
        session."""
        key = self.key.apart(mark)
        return replace(self, key=key, capabilities=capabilities, shared_key=self.list_key, mark=mark)

    def as_apart_as(self, other: Destination) -> Destination:
        """This place for the caller that `other` is for."""
        return self if other.capabilities is None else self.for_caller(other.mark, other.capabilities)

    def __repr__(self) -> str:
        return f"Destination({self.key.vendor!r})"
