"""Pure: a caller's rights as the snapshot holds them."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

from credentials.data_key_cache import WrappedKey
from credentials.resolve import CredentialRef
from gateway.catalog.catalog import Catalog
from gateway.catalog.vendor import Vendor
from orgs.access_rules import Allowlists
from orgs.principal import Principal
from proxy.vendors.destination import Destination


@dataclass(frozen=True, slots=True)
class OrganizationAccess:
    """An organization's part of every access decision. Ciphertexts only, opened when a vendor session needs them."""

    org_id: uuid.UUID
    name: str
    default_access_all: bool
    credentials: Mapping[str, tuple[CredentialRef, ...]]
    wrapped_keys: tuple[WrappedKey, ...]
    allowlists: Allowlists
    # By credential id: the vendor and its computed destination, without opened fields.
    destinations: dict[uuid.UUID, tuple[Vendor, Destination]] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Caller:
    """A verified bearer with its rights; stale once a current epoch differs from `epochs`."""

    principal: Principal
    organization: OrganizationAccess
    catalog: Catalog
    is_agent_key: bool
    audiences: frozenset[str]
    # Unix time.
    expires_at_s: float
    # Monotonic time at which the caller's own rows were loaded.
    loaded_at_s: float
    # Monotonic time at which the oldest part was loaded, such as the shared organization.
    as_of_s: float
    # Monotonic time until which the caller is valid while the epochs cannot be read.
    unconfirmed_until_s: float
    epoch_names: tuple[str, ...]
    epochs: tuple[str, ...] | None
